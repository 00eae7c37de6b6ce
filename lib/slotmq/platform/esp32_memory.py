# esp32_memory.py - an ESP32's memory, of which MicroPython's heap and Wi-Fi each take a part.
#
# The heap begins with 56 or 64 KB and doubles when it is full; where the system has less left than
# that in one piece, it takes all of it (py/gc.c), and Wi-Fi then fails. gc.mem_free() counts
# that piece as free, and no setting bounds it: so tables are not made that need more than the
# heap can have without. Borrowed at the start of a board of this kind, and by the tools.
import gc

from slotmq.platform.runtime import const

_FOR_PACKETS = const(16384)  # on their way, when Wi-Fi is up: a plan, ten of 1,600 bytes
# The port leaves Wi-Fi what it needs while the heap has not doubled more than once
# (MICROPY_GC_INITIAL_HEAP_SIZE in its mpconfigport.h).
_AT_FIRST = const(66000)
_AREA = const(4096)  # a piece that is worth an area
_OF_LAST = const(8192)  # counted of growth that takes too much: clients need it for moments


def free():
    """Bytes that the heap has or can have."""
    return space(gc.mem_alloc(), gc.mem_free(), _areas(), _FOR_PACKETS)


def told():
    """One line: what the system has left, and whether that is little."""
    areas = _areas()
    left = sum([area[1] for area in areas])
    largest = max([area[2] for area in areas])
    line = "slotmq: %d bytes are left for Wi-Fi and its packets, %d in one piece" % (left, largest)
    return line + ("; that is little: lower a limit" if left < _FOR_PACKETS else "")


def space(used, free, areas, kept):
    """The same of these numbers: gc's, esp32.idf_heap_info()'s, and what the system is to keep."""
    pieces = sorted([area[2] for area in areas])
    left = sum([area[1] for area in areas])
    free -= pieces[-1]
    while pieces[-1] >= _AREA:
        grows = min(pieces[-1], used + free)
        if left - grows < kept and used + free > _AT_FIRST:
            return free + max(0, min(left - kept, _OF_LAST))
        pieces[-1] -= grows
        pieces.sort()
        left -= grows
        free += grows - grows // 32  # the collector's own tables
    return free


def _areas():
    esp32 = __import__("esp32")
    return esp32.idf_heap_info(esp32.HEAP_DATA)
