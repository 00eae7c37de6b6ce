"""Where its journal lies: region_esp32.py tells."""

from slotmq_boards.region_esp32 import region

__all__ = ["region"]
