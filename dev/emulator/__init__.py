"""An emulated RP2040 that runs MicroPython's own firmware image.

    image.py      builds the image, a boot ROM, and a library for slirp, once, into the cache
    toolchain.py  the compilers for that, from Debian, without root
    kit.py        what is stored of that build, to link images with other frozen modules
    frozen.py     the image with the broker frozen into it, linked from the kit in seconds
    machine/      the emulator: rp2040js, and parts of the chip that it lacks
    board.py      starts and stops it; its UART and its network are ports of loopback
    cycles.py     counts the cycles that each kind of packet takes

It executes the chip's machine code, with lwIP over PPP instead of Wi-Fi. It has no USB, no
second core and no Wi-Fi chip, and reading flash takes no extra time. The boot ROM's functions
erase and program flash; chip.cjs does each at once, so no power cut interrupts it. Erasing sets
all bits, programming only clears bits, and both take as much time as on a chip.
"""
