# esp32_memory.py - how much of an ESP32's memory MicroPython's heap may take from Wi-Fi.
#
# The heap begins with 56 or 64 KB and doubles when it is full. If no free piece of the system's
# memory is that large, the heap takes the largest one whole (py/gc.c), and Wi-Fi then fails.
# gc.mem_free() counts that piece as free, and no setting bounds the growth: so the start refuses
# tables that would need it. Loaded for the start of an ESP32, and by the tools.
import gc


_FOR_PACKETS = 16384  # bytes for packets in Wi-Fi: an estimate, ten of 1,600 bytes
# The port leaves Wi-Fi what it needs while the heap has not doubled more than once
# (MICROPY_GC_INITIAL_HEAP_SIZE in its mpconfigport.h).
_AT_FIRST = 66000
_AREA = 4096  # bytes of the smallest piece by which the heap grows
# Bytes that count as free of growth that takes too much: clients need them for a moment only
_OF_LAST = 8192


def free():
    """Bytes that are free in the heap, or can be added to it."""
    return space(gc.mem_alloc(), gc.mem_free(), _areas(), _FOR_PACKETS)


def report():
    """One line: how many bytes are left to the system, and whether that is little."""
    areas = _areas()
    left = sum([area[1] for area in areas])
    largest = max([area[2] for area in areas])
    line = "slotmq: %d bytes are left for Wi-Fi and its packets, %d in one piece" % (left, largest)
    return line + ("; that is little: lower a limit" if left < _FOR_PACKETS else "")


def space(used, free, areas, kept):
    """free(), computed from gc's numbers, esp32.idf_heap_info(), and what the system must keep."""
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
