# arrays.py - how the fixed columns of the tables are made. Allocates, at start only.
from array import array


def u16(n, value=0):
    """n unsigned 16-bit cells: slots, packet ids, lengths; 0xFFFF means none."""
    return array("H", (value for _ in range(n)))


def i32(n, value=0):
    """n signed 32-bit cells: byte counts, tenths of a second."""
    return array("i", (value for _ in range(n)))


def chain(n):
    """A free list through n slots: cell i holds i + 1."""
    return array("H", range(1, n + 1))
