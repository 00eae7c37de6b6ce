"""Where the journal of a board with an RP2040 or RP2350 lies: behind its file system, if there.

The stock firmware formats all of its blocks for files, so there is nothing. A firmware of
one's own leaves some, as the board's page tells. Nothing is ever taken from a file system.
The folders of such boards link to this file: a module more would cost a board heap.
"""


def region():
    """Those blocks, as a block device; None: there are none."""
    import os

    import rp2
    import vfs

    for system, place in vfs.mount():
        # Of other kinds it cannot be told from here where they end.
        if place == "/" and type(system).__name__ == "VfsLfs2":
            used = os.statvfs("/")
            end = used[1] * used[2]
            whole = rp2.Flash()
            size = whole.ioctl(4, 0) * whole.ioctl(5, 0)
            if end < size:
                return rp2.Flash(start=end, len=size - end)
    return None
