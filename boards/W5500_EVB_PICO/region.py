"""Where its journal lies: region_rp2.py tells."""

from slotmq_boards.region_rp2 import region

__all__ = ["region"]
