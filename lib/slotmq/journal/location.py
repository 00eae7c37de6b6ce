# location.py - decides where a broker's journal lies: in a region of the board's raw flash, if
# there is one, else in a file; and locks that file. Loaded for the start only (journal/start.py);
# owns nothing; allocates.
import os
from errno import EACCES, EAGAIN

from slotmq.journal import records
from slotmq.platform.runtime import MICROPYTHON

# Measured, see FORMAT.md. A region of raw flash wears 15 times less.
_WEAR = """\
a file on littlefs, where each commit erases 1.1 blocks and programs 2.4 KB: \
with two a second a Pico W's flash lasts 115 days"""

# A file instead of the region would begin empty, and lower limits would later restore old state.
_TOO_HIGH = """\
limits that may need %d bytes, as many as the region of this board's flash takes, which has a \
journal, not %d; lower one (message_bytes, deliveries), or set persistence_location, where a file \
knows nothing of it"""
_HAS_ONE = """\
it goes on in %s, which was there before these limits fitted the region of this board's flash; \
without that file it begins anew in the region"""
_NOT_READ = """\
it lies in the region of this board's flash; %s is not read"""

_EXCLUSIVE = 2  # flock(2): LOCK_EX
_AT_ONCE = 4  # LOCK_NB
_RECORD = 9  # the most bytes of a record beside its body: type, length, CRC


def snapshot_bytes(limits):
    """The most bytes that the rows of full tables take, as records; see FORMAT.md."""
    session = limits.client_id_bytes + records.SESSION_SIZE + 2 + _RECORD
    session += 4 * limits.received + _RECORD
    subscription = limits.topic_bytes + 32 + records.SUBSCRIPTION_SIZE + _RECORD
    total = limits.sessions * session + limits.subscriptions * subscription
    total += limits.message_bytes + limits.messages * (records.MESSAGE_SIZE + 2 + _RECORD)
    total += limits.deliveries * (records.DELIVERY_SIZE + _RECORD)
    return total + limits.retained * (records.RETAINED_SIZE + _RECORD) + 64


def medium(limits, board, location, name, warn):
    """The medium of a journal. `location` and `name` are those of a file. ValueError: the limits
    are too high for the region that has the journal. OSError: no file can be there."""
    path = location + name
    snapshot = snapshot_bytes(limits)
    region = None if location else _region(board)
    if region:
        from slotmq.journal.medium_flash import FlashMedium

        made = FlashMedium(region, snapshot)
        fits = made.capacity >= snapshot
        if fits and not _is_there(path) or made.generations():
            if fits:
                if _is_there(path):
                    warn(_NOT_READ % path)
                return made
            raise ValueError(_TOO_HIGH % (made.capacity, snapshot))
        text = "the region of this board's flash is too small, %s takes its place"
        warn((_HAS_ONE if fits else text) % path)
    from slotmq.journal.medium_file import FileMedium

    kind, is_safe = promises(path)
    if is_safe is False:
        raise OSError("persistence_location: %s cannot keep a promise, %s" % (kind, path))
    if kind == "VfsLfs2":
        warn(_WEAR)
    elif not is_safe:
        warn("a power cut may break what it promises, for %s is not known to sync" % kind)
    return FileMedium(path, snapshot, 8 * snapshot + 1048576)


def _is_there(path):
    try:
        os.stat(path)
        return True
    except OSError:
        return False


def promises(path):
    """(the kind of file system, does it keep what was synced and rename atomically?)

    None: not known."""
    if not MICROPYTHON:
        from slotmq.platform import filesystem_cpython

        found = filesystem_cpython.kind(path)
        return found, found == "host"
    import vfs

    if path[0] != "/":
        path = os.getcwd().rstrip("/") + "/" + path
    kind, longest = "", 0
    for system, place in vfs.mount():
        place = place.rstrip("/") + "/"
        if path.startswith(place) and len(place) > longest:
            kind, longest = type(system).__name__, len(place)
    return kind, {"VfsLfs2": True, "VfsFat": False}.get(kind)


def lock(path):
    """Lock a journal's file; -> the open lock file. False: another process has the lock; None:
    there are no locks, as on a board."""
    kind, _ = promises(path)
    flock = _flock() if kind in ("host", "VfsPosix") else None
    if not flock:
        return None
    if MICROPYTHON:
        file = open(path + ".lock", "ab")
    else:
        from slotmq.platform import filesystem_cpython

        file = filesystem_cpython.lock(path + ".lock")
    try:
        is_free = not flock(file.fileno(), _EXCLUSIVE | _AT_ONCE)
    except OSError as error:
        is_free = error.errno not in (EAGAIN, EACCES)  # else there are no locks in this folder
    if is_free:
        return file
    file.close()
    return False


def _flock():
    # flock(2) of this Python. If another process has the lock, it returns -1 or raises OSError.
    try:
        from fcntl import flock

        return flock
    except ImportError:
        pass
    try:
        from ffi import open as library

        return library(None).func("i", "flock", "ii")
    except (ImportError, OSError):
        return None


def _region(board):
    # The board's region of flash for the journal, as a block device; None: the board has none,
    # or this is a computer that runs with the board's limits.
    try:
        return __import__("slotmq_boards.%s.region" % board, None, None, ["region"]).region()
    except ImportError:
        return None
