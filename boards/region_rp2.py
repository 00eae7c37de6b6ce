"""The journal's flash region on an RP2040 or RP2350: the blocks after the file system.

Stock firmware formats all blocks for the file system, so there are none. A custom firmware can
leave some; the board's README.md describes how. Blocks of a file system are never used. The
folders of these boards link to this file, since one more module would cost heap.
"""


def region():
    """The blocks as a block device; None: there are none."""
    import os

    import rp2
    import vfs

    for system, place in vfs.mount():
        # statvfs tells the end of a littlefs; for other file systems it is unknown.
        if place == "/" and type(system).__name__ == "VfsLfs2":
            used = os.statvfs("/")
            end = used[1] * used[2]
            whole = rp2.Flash()
            size = whole.ioctl(4, 0) * whole.ioctl(5, 0)
            if end < size:
                return rp2.Flash(start=end, len=size - end)
    return None
