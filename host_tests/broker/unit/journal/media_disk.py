# media_disk.py - a simulated disk for a file on CPython: after a power cut it has what was synced,
# and perhaps some of the rest.
import os

from media import garbage

from slotmq.journal import medium_file
from slotmq.platform import ondemand


class Cut(Exception):
    pass


def mount(disk):
    """Journals use this disk until mount(None)."""
    for module in (ondemand.take("journal.medium_file_start", 0), medium_file):
        module.os = disk or os
        vars(module).pop("open", None)
        if disk:
            module.open = disk.open_file
    return disk


class Disk:
    """Files for `open` and `os`; the power fails after `left` operations.

    Only what was synced is durable. After a power cut, changes of names may have become durable
    up to any one of them in their order, and any part of a file's bytes."""

    O_RDONLY = 0

    def __init__(self, left):
        self.left = left
        self.names = {}  # name: file
        self.durable = {}  # the names on the disk after a power cut
        self.waiting = []  # the names after each change since the last sync
        self.path = self
        self.space = 1 << 30  # bytes of all files together
        self.is_wanted = False  # does another program take all space that becomes free?

    def used(self):
        return sum(len(file.data) for file in set(self.names.values()))

    def statvfs(self, path):
        return 1, 1, self.space, 0, self.space - self.used()

    def grow(self, file, n):
        """Check that a file may have n bytes."""
        if n > len(file.data) and self.used() + n - len(file.data) > self.space:
            raise OSError(28, "full")

    def step(self):
        if not self.left:
            raise Cut
        self.left -= 1

    def geteuid(self):
        return File.st_uid

    def islink(self, path):
        return False

    def lexists(self, path):
        return path in self.names

    def samefile(self, a, b):
        return self.stat(a) is self.stat(b)

    def dirname(self, path):
        return path[: path.rfind("/")]

    def changed(self):
        self.waiting.append(dict(self.names))
        self.take()

    def take(self):
        if self.is_wanted:
            self.space = min(self.space, self.used())

    def open_file(self, path, mode, opener=None):
        self.step()
        if mode == "wb" or (mode == "ab" and path not in self.names):
            self.names[path] = File(self, bytearray())
            self.changed()
        if path not in self.names:
            raise OSError(2, path)
        return Handle(self, self.names[path])

    def open(self, folder, flags):
        return folder

    def close(self, folder):
        pass

    def fsync(self, what):
        self.step()
        if isinstance(what, File):
            what.durable = bytes(what.data)
        else:
            self.durable, self.waiting = dict(self.names), []

    def posix_fallocate(self, file, off, n):
        self.step()
        self.grow(file, n)
        file.data.extend(bytes(max(0, n - len(file.data))))

    def rename(self, old, new):
        if old not in self.names:
            raise OSError(2, old)
        self.step()
        if old not in self.names:
            raise OSError(2, old)
        self.names[new] = self.names.pop(old)
        self.changed()

    def link(self, old, new):
        if old not in self.names or new in self.names:
            raise OSError(17 if new in self.names else 2, new)
        self.step()
        self.names[new] = self.names[old]
        self.changed()

    def stat(self, path):
        if path not in self.names:
            raise OSError(2, path)
        file = self.names[path]
        file.st_nlink = list(self.names.values()).count(file)
        return file

    lstat = stat

    def remove(self, path):
        self.step()
        if path not in self.names:
            raise OSError(2, path)
        del self.names[path]
        self.changed()

    def after(self):
        """Every disk that a power cut now may leave."""
        for names in [self.durable, *self.waiting]:
            for part in ("none", "half", "all", "garbage"):
                disk = Disk(9999)
                files = {file: File(disk, file.after(part)) for file in names.values()}
                for name, file in names.items():
                    disk.names[name] = files[file]
                yield disk


class File:
    st_mode, st_uid = 0o600, 1000

    def __init__(self, disk, data):
        self.disk = disk
        self.data = data
        self.durable = b""

    def after(self, part):
        if part == "none":
            return bytearray(self.durable)
        if part == "half":
            n = (len(self.data) + len(self.durable)) // 2
            return self.data[:n] + self.durable[len(self.data[:n]) :]
        if part == "garbage":
            more = max(0, len(self.data) - len(self.durable))
            return bytearray(self.durable + garbage(more, more))
        return bytearray(self.data)


class Handle:
    def __init__(self, disk, file):
        self.disk, self.file, self.at = disk, file, 0

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def close(self):
        pass

    flush = close

    def fileno(self):
        return self.file

    def seek(self, at, whence=0):
        self.at = at + (len(self.file.data) if whence else 0)
        return self.at

    def truncate(self, at=None):
        at = self.at if at is None else at
        if at < len(self.file.data):
            self.disk.step()
            del self.file.data[at:]
            self.disk.take()
        return at

    def read(self, n):
        return bytes(self.file.data[self.at : self.at + n])

    def readinto(self, buf):
        found = self.read(len(buf))
        buf[: len(found)] = found
        self.at += len(found)
        return len(found)

    def write(self, data):
        self.disk.step()
        self.disk.grow(self.file, self.at + len(data))
        self.file.data[self.at : self.at + len(data)] = data
        self.at += len(data)
