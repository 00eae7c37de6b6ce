"""Measures how much heap the broker needs on a board, on 32-bit MicroPython with .mpy files."""
