# disk.py - file systems in memory, with the functions of `open` and `os` that
# journal/medium_file.py calls. After a power failure in the middle of an operation each keeps
# what its kind guarantees, and nothing else.
#
# littlefs  A file has the bytes of its last flush or close. Creating, removing or renaming a file
#           is atomic.
# host      Synced data stays. Of data that was not synced there is any prefix, its last bytes may
#           be garbage; or all but one block, which has zeros or its former content. A truncated
#           file may have its former end. Changes of names since the folder was synced are there
#           up to any of them, in order.
# FAT       Synced data stays as long as nothing is written. But the begin, length and clusters of
#           all files are in shared sectors that are written in place. An interrupted write leaves
#           such a sector with any content, so that any file may have lost its name, or its end
#           from a sector boundary on. A rename does not replace another file: Linux removes that
#           one first, MicroPython's VfsFat refuses.
#
# An operation is everything that changes something: opening to write, writing, flushing, syncing
# or truncating a file, renaming, linking, removing. After an interrupted operation every call
# raises PowerCut; after_the_cut() returns the disk that the next start finds.
from .disk_file import File, Handle
from .flash import PowerCut

NO_FILE, EXISTS = 2, 17
_SECTOR = 512


class Disk:
    O_RDONLY = 0

    def __init__(self, is_littlefs, numbers):
        self.is_littlefs = is_littlefs
        self.numbers = numbers
        self.names = {}  # what programs see: name -> File
        self.stored = {}  # what is on the medium
        self.waiting = []  # the names after each change since
        self.is_on = True
        self.operations = 0
        self.most = -1  # bytes of all files together; -1: unlimited
        self._left = 0  # operations until the power fails; 0: never; -1: at the next sync
        self.path = self  # for os.path.dirname

    def cut_at(self, operation):
        """The power fails during the n-th operation from now on, counted from 1."""
        self._left = operation

    def step(self):
        """An operation begins; True: the power fails during it."""
        if not self.is_on:
            raise PowerCut("there is no power")
        self.operations += 1
        if self._left <= 0:
            return False
        self._left -= 1
        return not self._left

    def cut_a_write(self):
        """A write begins; True: the power fails during it. On a computer half of such writes
        succeed, since they only fill a cache, and the next sync is interrupted instead."""
        cut = self.step()
        if cut and not self.is_littlefs and self.numbers.one_in(2):
            self._left = -1
            return False
        return cut

    def cut_a_sync(self):
        cut = self.step()
        return cut or self._left < 0

    def die(self):
        self.is_on = False
        raise PowerCut("during an operation")

    # As `os` and `open`

    def open_file(self, path, mode="rb", opener=None):
        if mode == "wb":
            cut = self.step()
            if not cut or self.numbers.one_in(2):
                self.names[path] = File(self)
                self._changed()
            if cut:
                self.die()
        elif mode == "ab" and path not in self.names:
            return self.open_file(path, "wb")
        if path not in self.names:
            raise OSError(NO_FILE, path)
        return Handle(self.names[path])

    def rename(self, old, new):
        if old not in self.names:
            raise OSError(NO_FILE, old)
        cut = self.step()
        if not cut or self.numbers.one_in(2):
            self.names[new] = self.names.pop(old)
            self._changed()
        if cut:
            self.die()

    def link(self, old, new):
        if old not in self.names or new in self.names:
            raise OSError(EXISTS if new in self.names else NO_FILE, new)
        cut = self.step()
        if not cut or self.numbers.one_in(2):
            self.names[new] = self.names[old]
            self._changed()
        if cut:
            self.die()

    def stat(self, path):
        """os.stat with the number of names and the owner."""
        if path not in self.names:
            raise OSError(NO_FILE, path)
        file = self.names[path]
        file.st_nlink = len([1 for other in self.names.values() if other is file])
        return file

    lstat = stat

    def samefile(self, a, b):
        return self.stat(a) is self.stat(b)

    def lexists(self, path):
        return path in self.names

    def islink(self, path):
        return False

    def geteuid(self):
        return File.st_uid

    def remove(self, path):
        if path not in self.names:
            raise OSError(NO_FILE, path)
        cut = self.step()
        if not cut or self.numbers.one_in(2):
            del self.names[path]
            self._changed()
        if cut:
            self.die()

    def dirname(self, path):
        return path[: path.rfind("/")]

    def open(self, folder, flags):
        return folder

    def close(self, folder):
        pass

    def fsync(self, what):
        if isinstance(what, File):
            what.sync()
        elif not self.step():
            self.stored, self.waiting = dict(self.names), []
        else:
            self.die()

    def posix_fallocate(self, file, at, n):
        file.write(len(file.data), bytes(max(0, at + n - len(file.data))))

    def statvfs(self, path):
        """os.statvfs with the bytes of a block at 1 and the free blocks at 4."""
        free = max(0, self.most - self.used()) if self.most >= 0 else 1 << 28
        return 1, 1, 0, free, free

    def _changed(self):
        if self.is_littlefs:
            self.stored = dict(self.names)
        else:
            self.waiting.append(dict(self.names))

    def used(self):
        """Bytes of all files."""
        files = {id(file): file for file in self.names.values()}  # a file may have two names
        return sum([len(file.data) for file in files.values()])

    def fill(self, free):
        """Leave so many bytes free; -1: unlimited again."""
        self.most = self.used() + free if free >= 0 else -1

    # After a power failure

    def after_the_cut(self):
        """The disk as the next start finds it."""
        numbers = self.numbers
        found = Disk(self.is_littlefs, numbers)
        found.most = self.most
        at = numbers.below(len(self.waiting) + 1)
        names = self.waiting[at - 1] if at else self.stored
        files = {}
        for name in sorted(names):
            file = names[name]
            if id(file) not in files:
                files[id(file)] = File(found, file.after(numbers))
            found.names[name] = files[id(file)]
        found.stored = dict(found.names)
        return found

    def rot(self, bits):
        """Flip so many bits of each file."""
        for name in sorted(self.names):
            data = self.names[name].data
            for _ in range(bits):
                if data:
                    at = (self.numbers.below(4096) * 4096 + self.numbers.below(4096)) % len(data)
                    data[at] ^= 1 << self.numbers.below(8)


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
