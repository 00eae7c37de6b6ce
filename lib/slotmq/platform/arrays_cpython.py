# arrays_cpython.py - replaces u16() and i32() of arrays.py, which fill a column cell by cell,
# since a small heap has no space beside it. Here a column is made at once: a broker starts in a
# millisecond. runtime.py, which each module imports, imports it before any table. Allocates.
from array import array

from slotmq.platform import arrays


def u16(n, fill=0):
    return array("H", (b"\xff" if fill else b"\0") * (2 * n))


def i32(n):
    return array("i", bytes(4 * n))


arrays.u16 = u16
arrays.i32 = i32
