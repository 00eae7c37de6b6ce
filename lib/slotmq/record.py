# record.py - how a program with `record` lines starts its recorder: the ring's folder, who this
# board is and which start this is. Borrowed by the start: allocates, and keeps nothing.
import os
import time
from binascii import crc32
from struct import pack, unpack

from slotmq import log, ondemand
from slotmq.app import borrow
from slotmq.record_file import Files
from slotmq.recorder import Recorder
from slotmq.runtime import const
from slotmq.settings import ConfError
from slotmq.taps import Taps

# Settings beside `record`
DEFAULTS = {
    "record_location": "record",  # the folder
    "record_segment_size": 16384,
    "record_budget": 262144,  # bytes of all segments
    "record_full": "drop_oldest",
    "record_flush_interval": 10,  # seconds that a record waits at most
    "record_events": True,
    "remote_admin": False,  # may clients fetch segments and tell the time?
}
_INFO = const(8)
_WARNING = const(2)
_BOOT = const(1)
_IDENTITY = "ring"
_EEXIST = const(17)
_YEAR_2000 = const(946684800)  # where the clocks of most boards begin
_CLOCK_IS_SET = const(1700000000)
_RTC = const(1)
_RTC_ERROR = const(60000)  # ms


def keep(app, wrong):
    """Record what passes through an App's broker; wrong(key, expected) names a line."""
    size = _setting(app.settings, "record_segment_size")
    if size % 256:
        raise ConfError(wrong("record_segment_size", "a multiple of 256"))
    if _setting(app.settings, "record_budget") < 2 * size:
        raise ConfError(wrong("record_budget", "at least two times record_segment_size"))
    location = _setting(app.settings, "record_location").rstrip("/") + "/"
    try:
        _make(location)
        lock = borrow("places", "lock", location + _IDENTITY)
        if lock is False:
            raise OSError(wrong("record_location", "a ring of no other broker, not " + location))
        taps = attach(app.broker, app.settings, location)
        taps.lock = lock
    except OSError as error:
        if not isinstance(error.args[0], int):
            raise  # it says what it is
        what = "a folder that can be written, not %s (%s)" % (location, error)
        raise ConfError(wrong("record_location", what))


def attach(broker, settings, location):
    """A broker records from now on; its Taps. OSError: it cannot."""
    files = Files(
        location, _setting(settings, "record_segment_size"), _setting(settings, "record_budget")
    )
    there = files.look()
    newest = files.header(there[-1]) if there else None
    board, boot = _identity(location, newest)
    stops = _setting(settings, "record_full") == "stop"
    args = board, boot, broker.sessions.names, broker.limits, settings.record, stops
    rec = Recorder(files, *args)
    remote = _setting(settings, "remote_admin")
    taps = Taps(broker, rec, _setting(settings, "record_flush_interval"), remote)
    if _setting(settings, "record_events"):
        from slotmq.witness import Witness

        Witness(taps)
    _begin(rec, there, newest)
    return taps


def _begin(rec, there, newest):
    control = ondemand.take("record_control", 0)
    if newest and rec.stops:
        control.note_boots(rec, newest[0])
    control.next_segment(rec, 0)
    control.event(rec, _BOOT, bytes((_cause(),)))
    seconds = time.time()
    if time.gmtime(0)[0] == 2000:
        seconds += _YEAR_2000
    if seconds > _CLOCK_IS_SET:
        whole = int(seconds)
        control.anchor(rec, _RTC, whole, int((seconds - whole) * 1000), _RTC_ERROR)
    if rec.is_open:
        log.write(_INFO, "Recording: boot %d, segment %08x." % (rec.boot, rec.files.segment))
    else:
        log.write(_WARNING, "Recording: nothing, the ring of %d segments is full." % len(there))


def _setting(settings, name):
    return getattr(settings, name, DEFAULTS[name])


def _make(folder):
    try:
        os.mkdir(folder[:-1])
    except OSError as error:
        if error.errno != _EEXIST:
            raise


def _cause():
    try:
        from machine import reset_cause

        return reset_cause() & 255
    except ImportError:
        return 0


def _identity(folder, newest):
    # The board's id, and the number of this start, which is kept before anything else is.
    path = folder + _IDENTITY
    board, boot = _read(path)
    unique = _unique()
    if unique and unique != board:
        # another board's files, or none: a ring that is lost must not begin again with 1
        boot = int.from_bytes(os.urandom(3), "big") << 4
    board = unique or board or os.urandom(8)
    boot = max(boot, newest[0] if newest else 0) + 1
    data = board + pack("<I", boot)
    with open(path + ".new", "wb") as file:
        file.write(data + pack("<I", crc32(data)))
        file.flush()
        if hasattr(os, "fsync"):
            os.fsync(file.fileno())
    os.rename(path + ".new", path)
    return board, boot


def _read(path):
    try:
        with open(path, "rb") as file:
            data = file.read(16)
    except OSError:
        return None, 0
    if len(data) < 16 or unpack("<I", data[12:])[0] != crc32(data[:12]):
        return None, 0
    return data[:8], unpack("<I", data[8:12])[0]


def _unique():
    try:
        from machine import unique_id

        return (unique_id() + bytes(8))[:8]
    except ImportError:
        return None
