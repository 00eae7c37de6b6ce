"""Measures the flash wear by persistence, on 32-bit MicroPython with a flash chip in RAM."""
