# disk_file.py - a file of the disk in memory, and an open file. Owns the file's bytes and those of
# the last sync. disk.py describes what is left of it after a power failure.
NO_SPACE = 28
BLOCK = 512  # of a host's file system, at least


class File:
    st_mode, st_uid = 0o600, 1000

    def __init__(self, disk, data=b""):
        self.disk = disk
        self.data = bytearray(data)
        self.synced = len(data)  # bytes that are safe
        self.before = b""  # the synced content, if bytes of it were changed since
        self.is_dirty = False
        self.st_nlink = 1

    def write(self, at, data):
        disk = self.disk
        cut = disk.cut_a_write()
        if 0 <= disk.most < disk.used() + max(0, at + len(data) - len(self.data)):
            raise OSError(NO_SPACE, "write")
        n = len(data)
        if cut:
            n = disk.numbers.below(n + 1)
        self.is_dirty = True
        self._change(at)
        if at == len(self.data):
            self.data += data[:n]
        else:
            self.data[at : at + n] = data[:n]
        if cut:
            disk.die()

    def sync(self):
        cut = self.disk.cut_a_sync()
        if not cut or self.disk.numbers.one_in(2):
            self.synced, self.before = len(self.data), b""
        self.is_dirty = False
        if cut:
            self.disk.die()

    def truncate(self, at):
        cut = self.disk.step()
        if not cut or self.disk.numbers.one_in(2):
            self._change(at)
            self.data = self.data[:at]
            self.is_dirty = True
        if cut:
            self.disk.die()

    def _change(self, at):
        if at < self.synced:
            self.before = self.before or bytes(self.data[: self.synced])
            self.synced = at

    def after(self, numbers):
        """The content after a power failure."""
        found = self._written(numbers)
        if len(found) < len(self.before) and (self.disk.is_littlefs or numbers.one_in(2)):
            found = found + self.before[len(found) :]
        return found

    def _written(self, numbers):
        more = len(self.data) - self.synced
        if self.disk.is_littlefs or more <= 0:
            return self.data[: self.synced]
        first, last = self.synced // BLOCK, len(self.data) // BLOCK
        if first < last and numbers.one_in(2):
            return self._with_a_hole(numbers.between(first, last))
        n = self.synced + numbers.below(more + 1)
        found = self.data[:n]
        if numbers.one_in(3):
            for at in range(max(self.synced, n - 16), n):
                found[at] = numbers.below(256)
        return found

    def _with_a_hole(self, block):
        # The length and later blocks were written, this one was not: delayed allocation.
        found = bytearray(self.data)
        for at in range(max(self.synced, block * BLOCK), min(len(found), (block + 1) * BLOCK)):
            found[at] = self.before[at] if at < len(self.before) else 0
        return found


class Handle:
    """An open file."""

    def __init__(self, file):
        self.file = file
        self.at = 0

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def close(self):
        if self.file.is_dirty:
            self.flush()

    def fileno(self):
        return self.file

    def flush(self):
        if self.file.disk.is_littlefs:
            self.file.sync()

    def seek(self, at, whence=0):
        self.at = at + (len(self.file.data) if whence else 0)
        return self.at

    def truncate(self, at=None):
        at = self.at if at is None else at
        if at < len(self.file.data):
            self.file.truncate(at)
        return at

    def read(self, n):
        found = bytes(self.file.data[self.at : self.at + n])
        self.at += len(found)
        return found

    def readinto(self, buf):
        found = self.read(len(buf))
        buf[: len(found)] = found
        return len(found)

    def write(self, data, off=0, n=None):
        n = len(data) if n is None else n
        self.file.write(self.at, bytes(data[off : off + n]))
        self.at += n
        return n
