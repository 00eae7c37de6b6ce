# pages_cpython.py - buffers of connections on pages of their own: what no client has used takes no
# memory. (A bytearray is written to when it is made.) Allocates, once.
import mmap

_LARGE = 1 << 18  # bytes


def on_pages(conns):
    """Put the large buffers of Connections, which nobody has used yet, on such pages."""
    old = conns.tx
    conns.tx = _pages(old)
    conns.partial = _pages(conns.partial)
    conns.columns = tuple([conns.tx if each is old else each for each in conns.columns])


def _pages(buffer):
    n = len(buffer)
    if n < _LARGE:
        return buffer
    if hasattr(mmap, "MAP_PRIVATE"):
        return mmap.mmap(-1, n, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return mmap.mmap(-1, n)
