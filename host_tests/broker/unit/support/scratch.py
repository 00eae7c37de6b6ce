# scratch.py - files for a test, on both runtimes.
import os

_FOLDER = os.getenv("SLOTMQ_SCRATCH")  # told to MicroPython, which has no tempfile
if _FOLDER is None:
    import atexit
    import tempfile

    _kept = tempfile.TemporaryDirectory(prefix="slotmq-unit-")
    atexit.register(_kept.cleanup)
    _FOLDER = _kept.name

_count = 0


def path():
    """A path of its own, with no file there."""
    global _count
    _count += 1
    return f"{_FOLDER}/{_count}"


def write(content):
    """The path of a new file with this content, bytes or str."""
    new = path()
    with open(new, "wb") as file:  # noqa: PTH123
        file.write(content if isinstance(content, bytes) else content.encode())
    return new


def content(path):
    """The bytes of a file; None: there is none."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read()
    except OSError:
        return None
