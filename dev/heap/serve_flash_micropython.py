# serve_flash_micropython.py BOARD HOST PORT CONF - as serve_micropython.py, on a board with a
# region of raw flash for the journal; a file stands for the chip.
import sys

from flash_device import Device

device = Device()
name = f"slotmq_boards.{sys.argv[1]}.region"
__import__(name)
sys.modules[name].region = lambda: device
import serve_micropython  # noqa: E402, F401
