# fat.py - a file system in memory that keeps what FAT guarantees when the power goes, and
# nothing else. Disk (disk.py) has the rest of it.
#
# What was synced stays while nothing is written. But where a file begins, how long it is and
# which clusters it has lies in sectors that all files share and that are written in place:
# from an operation that is cut such a sector comes back with anything in it, and any file
# may have lost its end, from a sector's border on, or its name. There is no rename over
# another file: as Linux does it, that one is removed first. (MicroPython's VfsFat refuses.)
from .disk import Disk, File

_SECTOR = 512


class Fat(Disk):
    def __init__(self, numbers):
        Disk.__init__(self, True, numbers)
        self.is_torn = False  # has the power gone while a sector was written?

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
        for name in sorted(self.kept):
            data = self.kept[name].after(numbers)
            fate = numbers.below(4) if self.is_torn else 0
            if fate == 2:
                data = data[: numbers.below(len(data) // _SECTOR + 1) * _SECTOR]
            if fate < 3:
                found.names[name] = File(found, data)
        found.kept = dict(found.names)
        return found
