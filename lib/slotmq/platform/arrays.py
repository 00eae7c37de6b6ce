# arrays.py - makes the fixed columns of the tables. Allocates, at the start only, and nothing but
# the column: in a small heap a temporary object beside it would leave a hole.
from array import array

_MANY = 0x8000


def u16(n, fill=0):
    """n unsigned 16-bit cells: slots, packet ids, lengths; fill is 0, or 0xFFFF for none."""
    if n > _MANY:
        return array("H", (b"\xff" if fill else b"\0") * (2 * n))
    cells = array("H", range(n))
    for i in range(n):
        cells[i] = fill
    return cells


def i32(n):
    """n signed 32-bit cells of 0: byte counts, tenths of a second."""
    cells = array("i", range(n))
    for i in range(n):
        cells[i] = 0
    return cells


def chain(n):
    """A free list through n slots: cell i contains i + 1."""
    return array("H", range(1, n + 1))
