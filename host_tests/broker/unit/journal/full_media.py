# full_media.py - media that other programs fill and free again: fill() and free().
import os

import media

from slotmq.journal.medium_file import FileMedium
from slotmq.journal.medium_flash import FlashMedium
from slotmq.platform.runtime import MICROPYTHON

if MICROPYTHON:
    import vfs
else:
    import media_disk


class OnFlash:
    """A region that is too small for the tables: the journal itself fills it."""

    device = None

    def open_medium(self):
        if self.device is None:
            self.device = media.Flash(12, 4096)
        return FlashMedium(self.device, self.SNAPSHOT)

    def fill(self):
        pass

    free = fill


class OnDisk:
    """A disk of a computer."""

    disk = None

    def open_medium(self):
        if self.disk is None:
            self.disk = media_disk.Disk()
            media_disk.mount(self.disk)
        return FileMedium("/j/f", self.SNAPSHOT, 1 << 20)

    def tearDown(self):
        media_disk.mount(None)

    def fill(self):
        self.disk.fill(3000)

    def free(self):
        self.disk.fill(-1)


class OnLittlefs:
    BLOCKS, SIZE = 80, 512
    device = None

    def open_medium(self):
        if self.device is None:
            self.device = media.Ram(self.BLOCKS, self.SIZE)
            vfs.VfsLfs2.mkfs(self.device)
            vfs.mount(vfs.VfsLfs2(self.device), "/j")
        return FileMedium("/j/f", self.SNAPSHOT, 1 << 20)

    def tearDown(self):
        self.medium.close()
        vfs.umount("/j")
        self.device = None

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
