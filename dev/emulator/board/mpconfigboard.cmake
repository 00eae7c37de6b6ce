# The emulated board: MicroPython's rp2 port for a Pico, with lwIP over PPP, since the emulator
# has no Wi-Fi chip, and without USB, which it lacks too.
set(PICO_BOARD "pico")
set(PICO_PLATFORM "rp2040")
set(PICO_NO_PICOTOOL 1)
set(MICROPY_PY_LWIP ON)
list(APPEND MICROPY_DEF_BOARD
    MICROPY_PY_NETWORK=1
    MICROPY_PY_NETWORK_PPP_LWIP=1
)
set(MICROPY_FROZEN_MANIFEST ${MICROPY_BOARD_DIR}/manifest.py)
