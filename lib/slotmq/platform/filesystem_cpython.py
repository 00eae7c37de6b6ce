# filesystem_cpython.py - in which kind of file system of a computer a file lies, as Linux tells
# it; and the file that keeps other brokers away.
import os

_MOUNTS = "/proc/self/mounts"
_FAT = ("vfat", "msdos", "exfat")


def kind(path, mounts=_MOUNTS):
    """FAT's name where it is that; "host", where it is another or nobody knows."""
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
    # Blanks and the like are octal there, \040.
    first, *others = text.split("\\")
    return first + "".join([chr(int(part[:3], 8)) + part[3:] for part in others])


def lock(path):
    """A file to take locks of, which nobody else may open: whoever can has them too."""
    file = open(path, "ab", opener=_private)  # noqa: SIM115 - it stays open
    found = os.fstat(file.fileno())
    if found.st_uid == os.geteuid() and found.st_nlink == 1:
        try:
            os.fchmod(file.fileno(), 0o600)
        except OSError:
            pass  # a file system without rights
    return file


def _private(path, flags):
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)
