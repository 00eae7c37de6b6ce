# arrays.py - how the fixed columns of the tables are made. Allocates, at start only.
from array import array


def u16(n, fill=0):
    """n unsigned 16-bit cells: slots, packet ids, lengths; fill is 0 or 0xFFFF, none."""
    return array("H", (b"\xff" if fill else b"\0") * (2 * n))


def i32(n):
    """n signed 32-bit cells, 0: byte counts, tenths of a second."""
    return array("i", bytes(4 * n))


def chain(n):
    """A free list through n slots: cell i holds i + 1."""
    cells = u16(n)
    for i in range(n):
        cells[i] = i + 1
    return cells
