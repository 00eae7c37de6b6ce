# record_begin.py - the first segment of a start: who this board is, which start this is, by what,
# and what time it may be. Borrowed by the start, once nothing else can refuse it any more:
# allocates, and keeps nothing.
import os
import time
from binascii import crc32
from struct import unpack

from slotmq import log, ondemand, record_file
from slotmq.record_file import IDENTITY
from slotmq.record_wall import anchor
from slotmq.runtime import const
from slotmq.settings import ConfError

_INFO = const(8)
_WARNING = const(2)
_BOOT = const(1)
_FAILED = const(3)  # as in recorder.py
_YEAR_2000 = const(946684800)  # where the clocks of most boards begin
_CLOCK_IS_SET = const(1700000000)
_RTC = const(1)
_RTC_ERROR = const(60000)  # ms
_NO_ROOM = (28, 122)  # ENOSPC, EDQUOT


def start(app):
    """The recorder of an App takes records from now on."""
    rec = app.broker.recorder.rec
    try:
        begin(rec)
    except OSError as error:
        key = "record_location" if "record_location" in app.lines else "record"
        what = app.conf, app.lines[key], key, rec.folder, error
        raise ConfError("%s:%d: %s: expected a folder that can be written, not %s (%s)" % what)


def begin(rec):
    """A Recorder takes records from now on. OSError: it cannot."""
    there = record_file.look(rec)
    newest = record_file.header(rec, there[-1]) if there else None
    rec.board, rec.boot = _identity(rec.folder, newest)
    rec.retry_at = 0
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
        anchor(rec, _RTC, whole, int((seconds - whole) * 1000), _RTC_ERROR)
    if rec.is_open:
        log.write(_INFO, "Recording: boot %d, segment %08x." % (rec.boot, rec.segment))
    elif rec.gap == _FAILED:
        log.write(_WARNING, "Recording: nothing, there is no room to write; it is tried again.")
    else:
        log.write(_WARNING, "Recording: nothing, the ring of %d segments is full." % len(there))
    if ondemand.IS_SMALL:
        ondemand.forget_all()
    else:
        from slotmq import record_disk

        record_disk.stand_before(rec)


def _cause():
    try:
        from machine import reset_cause

        return reset_cause() & 255
    except ImportError:
        return 0


def _identity(folder, newest):
    # The board's id, and the number of this start, which is kept before anything else is.
    known, boot = _read(folder + IDENTITY)
    board = known
    unique = _unique()
    if unique and unique != board:
        # another board's files, or none: a ring that is lost must not begin again with 1
        boot = int.from_bytes(os.urandom(3), "big") << 4
    board = unique or board or os.urandom(8)
    boot = max(boot, newest[0] if newest else 0) + 1
    try:
        record_file.keep(folder, board, boot)
    except OSError as error:
        if board != known or error.errno not in _NO_ROOM:
            raise
        # Nothing of this start is there before a segment has room, which says its number too.
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
