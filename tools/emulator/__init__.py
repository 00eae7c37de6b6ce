"""A board without a board: MicroPython's own image for the RP2040 in an emulator.

    image.py      builds the image, a boot ROM and what slirp needs, once, into the cache
    toolchain.py  the compilers for that, from Debian, without root
    kit.py        what the build leaves, for other modules in the image
    frozen.py     the image with the broker in it, of that, in seconds
    machine/      the emulator: rp2040js, and what of the chip it lacks
    board.py      starts it and stops it; its UART and its network are ports of loopback

It runs the chip's machine code, with lwIP behind PPP in place of Wi-Fi. It has no
USB, no second core and no Wi-Fi chip, and knows nothing of flash's slow reading. Flash is
erased and programmed by the boot ROM's functions, which chip.cjs does at once: an erase makes
ones, a program only clears bits, time passes as on a chip, and no power cut comes between.
"""
