# littlefs.py - MicroPython's own littlefs on a chip in RAM, instead of the model of littlefs in
# tools/sim/disk.py. For MicroPython only. A power cut happens within an operation of the chip.
#
# An exception cannot pass through littlefs. So after the cut each call of the chip returns an
# error, and a caller that gets OSError must look at is_on.
import os

import vfs

from slotmq_tools.sim.flash import Flash, PowerCut
from slotmq_tools.sim.numbers import Numbers

_FOLDER = "/j"
_OTHERS = "/j/others"  # the file of the program that fills the file system
_BLOCK, _PAGE = 1024, 32
_EIO = 5
SIZES = {"readsize": _PAGE, "progsize": _PAGE, "lookahead": 32}


class Chip(Flash):
    def readblocks(self, block, buf, offset=0):
        return -_EIO if not self.is_on else Flash.readblocks(self, block, buf, offset)

    def writeblocks(self, block, buf, offset=None):
        try:
            return Flash.writeblocks(self, block, buf, offset)
        except PowerCut:
            return -_EIO

    def ioctl(self, op, arg=0):
        try:
            return Flash.ioctl(self, op, arg)
        except PowerCut:
            return -_EIO


class Littlefs:
    """The interface of Disk. The files are real ones."""

    def __init__(self, room, seed):
        self.chip = Chip(room * 8 // 5 // _BLOCK + 24, _BLOCK, _PAGE, seed)
        self.numbers = Numbers(seed, 8)
        vfs.VfsLfs2.mkfs(self.chip, **SIZES)
        self.mount()

    @property
    def is_on(self):
        return self.chip.is_on

    def mount(self):
        self.umount()
        vfs.mount(vfs.VfsLfs2(self.chip, **SIZES), _FOLDER)

    def umount(self):
        for _, place in vfs.mount():
            if place == _FOLDER:
                vfs.umount(_FOLDER)

    def cut_at(self, operation):
        self.chip.cut_at(operation)

    def after_the_cut(self):
        self.umount()
        self.chip.power_on()
        self.mount()
        return self

    def fill(self, room):
        """Another program leaves about so many bytes free; -1: it frees all again."""
        try:
            if room < 0:
                os.remove(_OTHERS)
                return
            with open(_OTHERS, "wb") as file:
                while os.statvfs(_FOLDER)[3] * _BLOCK > room + 2 * _BLOCK:
                    file.write(bytes(_BLOCK))
                    file.flush()
        except OSError:
            pass  # the file system is full, or the power is off

    def rot(self, bits):
        """Flip so many bits of each file. littlefs does not notice it."""
        for name, *_ in os.ilistdir(_FOLDER):
            try:
                self._rot(_FOLDER + "/" + name, bits)
            except OSError:
                pass  # there is no space to write it again

    def _rot(self, path, bits):
        with open(path, "r+b") as file:
            size = file.seek(0, 2)
            for _ in range(bits if size else 0):
                at = (self.numbers.below(4096) * 4096 + self.numbers.below(4096)) % size
                file.seek(at)
                byte = file.read(1)[0]
                file.seek(at)
                file.write(bytes((byte ^ 1 << self.numbers.below(8),)))
