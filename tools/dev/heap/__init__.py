"""What the broker takes of a board's heap, measured on 32-bit MicroPython from .mpy files."""
