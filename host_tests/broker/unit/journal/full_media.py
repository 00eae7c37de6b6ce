# full_media.py - media that can be full, for test_full_medium.py: fill() and free().
import os

import media

from slotmq.journal.medium_file import FileMedium
from slotmq.journal.medium_flash import FlashMedium
from slotmq.platform import heap
from slotmq.platform.runtime import MICROPYTHON

if MICROPYTHON:
    import vfs
else:
    import media_disk


class OnFlash:
    """A region that is too small for the tables: what is kept fills it."""

    device = None

    def made(self):
        if self.device is None:
            self.device = Flash(12, 4096)
        self.medium = FlashMedium(self.device, self.SNAPSHOT)
        return self.medium

    def fill(self):
        pass

    free = fill


class Flash(media.Flash):
    """Allocates, and lifts the loop's lock for that."""

    def readblocks(self, block, buf, off=0):
        heap.lift()
        media.Flash.readblocks(self, block, buf, off)
        heap.drop()

    def writeblocks(self, block, buf, off=0):
        heap.lift()
        media.Flash.writeblocks(self, block, buf, off)
        heap.drop()


class OnDisk:
    """A host's disk, which others fill."""

    disk = None

    def made(self):
        if self.disk is None:
            self.disk = media_disk.Disk(1 << 30)
            media_disk.mount(self.disk)
        self.medium = FileMedium("/j/f", self.SNAPSHOT, 1 << 20)
        return self.medium

    def tearDown(self):
        media_disk.mount(None)

    def fill(self):
        self.disk.space = self.disk.used() + 3000

    def free(self):
        self.disk.space = 1 << 30


class OnLittlefs:
    BLOCKS, SIZE = 80, 512

    def made(self):
        if self.medium is None or not isinstance(self.medium, FileMedium):
            self.device = Lifting(self.BLOCKS, self.SIZE)
            vfs.VfsLfs2.mkfs(self.device)
            vfs.mount(vfs.VfsLfs2(self.device), "/j")
        self.medium = FileMedium("/j/f", self.SNAPSHOT, 1 << 20)
        return self.medium

    def tearDown(self):
        self.medium.close()
        vfs.umount("/j")

    def fill(self):
        with open("/j/other", "wb") as file:  # noqa: PTH123
            try:
                while True:
                    file.write(bytes(256))
                    file.flush()
            except OSError:
                pass

    def free(self):
        os.remove("/j/other")  # noqa: PTH107


class Lifting(media.Ram):
    def readblocks(self, block, buf, off=0):
        heap.lift()
        media.Ram.readblocks(self, block, buf, off)
        heap.drop()

    def writeblocks(self, block, buf, off=0):
        heap.lift()
        media.Ram.writeblocks(self, block, buf, off)
        heap.drop()

    def ioctl(self, op, block):
        heap.lift()
        done = media.Ram.ioctl(self, op, block)
        heap.drop()
        return done
