# filesystem_cpython.py - which kind of file system of a computer a file is in, as Linux reports
# it; the lock file that keeps other brokers away; files that only the broker's user may read. (On
# MicroPython app/start.py sets the umask, since os has nothing for that.)
import os

_MOUNTS = "/proc/self/mounts"
_FAT = ("vfat", "msdos", "exfat")


def kind(path, mounts=_MOUNTS):
    """The name of a FAT file system; "host" for any other, or if it is not known."""
    path = os.path.realpath(path)
    found, longest = "host", ""
    try:
        with open(mounts, errors="surrogateescape") as file:
            lines = file.readlines()
    except OSError:
        return found
    for line in lines:
        _, place, system, *_ = line.split(" ")
        place = _plain(place).rstrip("/") + "/"
        if path.startswith(place) and len(place) >= len(longest):  # the last mount hides others
            found, longest = system, place
    return found if found in _FAT else "host"


def _plain(text):
    # Blanks and some other characters are octal in mounts: \040.
    first, *others = text.split("\\")
    return first + "".join([chr(int(part[:3], 8)) + part[3:] for part in others])


def private(path, mode, buffering=-1):
    """open(), as in journal/medium_file_start.py: only the broker's user may read a new file, as
    mosquitto's."""
    return open(path, mode, buffering, opener=lambda path, flags: os.open(path, flags, 0o600))


def lock(path):
    """A file to lock, which no other user may open: whoever opens it could take the lock."""
    file = open(path, "ab", opener=_private)  # noqa: SIM115 - it stays open
    found = os.fstat(file.fileno())
    if found.st_uid == os.geteuid() and found.st_nlink == 1:
        try:
            os.fchmod(file.fileno(), 0o600)
        except OSError:
            pass  # a file system without permissions
    return file


def _private(path, flags):
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)
