# manifest.py - freezes broker and firmware into MicroPython's image for this board. It needs a
# clone of MicroPython and one of slotmq:
#   make -C ports/esp32 BOARD=ESP32_GENERIC_C3 \
#       FROZEN_MANIFEST=/path/of/slotmq/boards/ESP32_GENERIC_C3/manifest.py
# Frozen code runs from flash, and is imported before what is in /lib. `slotmq deploy` then copies
# the limits, the configuration and main.py, but no code.
include("$(PORT_DIR)/boards/manifest.py")  # noqa: F821 - what the stock image has
include("../../lib/manifest.py")  # noqa: F821
include("../../firmware/manifest.py")  # noqa: F821
