# fat.py - a file system in memory that keeps what FAT guarantees after a power failure, and
# nothing else. It is a Disk (disk.py).
#
# Synced data stays as long as nothing is written. But the begin, length and clusters of all files
# are in shared sectors that are written in place. An interrupted write leaves such a sector with
# any content, so that any file may have lost its name, or its end from a sector boundary on. A
# rename does not replace another file: Linux removes that one first, MicroPython's VfsFat refuses.
from .disk import Disk, File

_SECTOR = 512


class Fat(Disk):
    def __init__(self, numbers):
        Disk.__init__(self, True, numbers)
        self.is_torn = False  # the power failed while a sector was written

    def die(self):
        self.is_torn = True
        Disk.die(self)

    def rename(self, old, new):
        if new in self.names and old in self.names:
            self.remove(new)
        Disk.rename(self, old, new)

    def after_the_cut(self):
        """The disk as the next start finds it."""
        numbers = self.numbers
        found = Fat(numbers)
        found.most = self.most
        for name in sorted(self.stored):
            data = self.stored[name].after(numbers)
            damage = numbers.below(4) if self.is_torn else 0
            if damage == 2:
                data = data[: numbers.below(len(data) // _SECTOR + 1) * _SECTOR]
            if damage < 3:
                found.names[name] = File(found, data)
        found.stored = dict(found.names)
        return found
