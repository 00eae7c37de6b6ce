# manifest.py - MicroPython's build for this board takes it unchanged, from a clone of
# MicroPython and one of slotmq:
#   make -C ports/esp32 BOARD=ESP32_GENERIC_S3 \
#       FROZEN_MANIFEST=/path/of/slotmq/boards/ESP32_GENERIC_S3/manifest.py
# Frozen, broker and firmware run from flash; `slotmq deploy` still writes the preset, the
# configuration and main.py, as files, and no code: what is frozen goes before /lib.
include("$(PORT_DIR)/boards/manifest.py")  # noqa: F821 - what the stock image has
include("../../lib/manifest.py")  # noqa: F821
include("../../firmware/manifest.py")  # noqa: F821
