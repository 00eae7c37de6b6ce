# manifest.py - freezes broker and firmware into MicroPython's image for this board. It needs a
# clone of MicroPython and one of slotmq:
#   make -C ports/rp2 BOARD=RPI_PICO2_W \
#       FROZEN_MANIFEST=/path/of/slotmq/boards/RPI_PICO2_W/manifest.py
# Frozen code runs from flash, and is imported before what is in /lib. `slotmq deploy` then copies
# the limits, the configuration and main.py, but no code.
include("$(PORT_DIR)/boards/RPI_PICO2_W/manifest.py")  # noqa: F821 - what the stock image has
include("../../lib/manifest.py")  # noqa: F821
include("../../firmware/manifest.py")  # noqa: F821
