"""Where a Pico W's journal lies: the part of the flash behind the file system, if there is one.

The stock firmware formats all of its 212 blocks for files, so it has none. A firmware of
one's own leaves some: in its `_boot.py`, before anything is formatted,

    bdev = rp2.Flash(start=0, len=148 * 4096)

gives files 148 blocks and the journal 64. Nothing is ever taken from a file system.
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
