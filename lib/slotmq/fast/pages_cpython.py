# pages_cpython.py - buffers of connections on pages of their own: what no client has used takes no
# memory. (A bytearray is written to when it is made.) Allocates, once.
_LARGE = 1 << 18  # bytes


def pages(n):
    """What bytearray(n) returns, or pages."""
    if n < _LARGE:
        return bytearray(n)
    import mmap  # which smaller brokers need not load

    try:
        if hasattr(mmap, "MAP_PRIVATE"):
            # The system need not have all of it at once.
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
            return mmap.mmap(-1, n, flags=flags)
        return mmap.mmap(-1, n)
    except OSError:
        raise MemoryError("%d bytes" % n) from None
