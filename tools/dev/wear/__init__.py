"""What persistence costs a flash chip, measured on 32-bit MicroPython with a chip in RAM."""
