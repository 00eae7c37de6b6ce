# start.py - the recorder of a program with `record` lines. make() makes it; start() opens its
# first segment, when nothing can refuse the start any more: at once, or with a journal after that
# was read. Loaded for these two steps only; owns nothing; allocates.
import gc
import os
import time
from binascii import crc32
from struct import unpack

from slotmq.config.settings import ConfError
from slotmq.constants import CLOCK_IS_SET, FAILED, INFO, NEVER, WARNING, YEAR_2000
from slotmq.fast import filter_ok
from slotmq.platform import log, ondemand
from slotmq.platform.ondemand import borrow
from slotmq.platform.runtime import MICROPYTHON
from slotmq.recorder import files
from slotmq.recorder.files import IDENTITY
from slotmq.recorder.interceptor import RecordInterceptor
from slotmq.recorder.wall_clock import anchor
from slotmq.recorder.writer import Recorder

# Settings beside `record`
DEFAULTS = {
    "record_location": "record",  # the folder
    "record_segment_size": 16384,  # on a computer, 256 times as much
    "record_budget": 262144,  # bytes of all segments; on a computer, 256 times as much
    "record_full": "drop_oldest",
    "record_flush_interval": 10,  # the most seconds that a record waits
    "record_events": True,
    "remote_admin": False,  # may clients fetch segments and tell the time?
}
_BOOT = 1
_EEXIST = 17
_NO_SPACE = (28, 122)  # ENOSPC, EDQUOT
_RTC = 1
_RTC_ERROR = 60000  # ms
_COMPUTERS = 8  # sizes are 2 ** 8 times larger on a computer: it writes 100 MB a second


def make(app):
    """Make the recorder of an App's broker; without a journal start() it, too."""
    ondemand.take("recorder.segments", 0)  # packed, recorder/files.py is in the same file
    ondemand.IS_SMALL and gc.collect()
    if not all(filter_ok(text, 0, len(text)) for text in app.settings.record):
        raise ConfError(_wrong(app, "record", "a topic filter"))
    size, budget = _sizes(app.broker, app.settings)
    if size % 256:
        raise ConfError(_wrong(app, "record_segment_size", "a multiple of 256"))
    if budget < 2 * size:
        raise ConfError(_wrong(app, "record_budget", "at least two times record_segment_size"))
    location = _setting(app.settings, "record_location").rstrip("/") + "/"
    try:
        _make(location)
        # a board has no second broker
        lock = None if MICROPYTHON else borrow("journal.location", "lock", location + IDENTITY)
        if lock is False:
            what = "a ring that no other broker keeps, not " + location
            raise OSError(_wrong(app, "record_location", what))
        _made(app.broker, app.settings, location).rec.lock = lock
        if not app.settings.persistence:
            start(app)
    except OSError as error:
        if not isinstance(error.args[0], int):
            raise  # its text says what is wrong
        raise _unwritable(app, location, error)
    except MemoryError:
        raise MemoryError("no heap is left for the recorder; lower limit message_bytes")
    ondemand.IS_SMALL and ondemand.forget_all()


def start(app):
    """From now on the recorder of an App takes records."""
    rec = app.broker.record.rec
    app.broker.record.clock()  # a journal was read meanwhile
    try:
        _begin(rec)
    except OSError as error:
        raise _unwritable(app, rec.folder, error)


def _wrong(app, key, expected):
    # Names the line of the key; if there is none, the last `record` line
    key = key if key in app.lines else "record"
    return "%s: %s: expected %s" % (app.lines[key], key, expected)


def _unwritable(app, location, error):
    what = "a folder that can be written, not %s (%s)" % (location, error)
    return ConfError(_wrong(app, "record_location", what))


def attach(broker, settings, location):
    """From now on a broker records; -> its RecordInterceptor. OSError: it cannot."""
    interceptor = _made(broker, settings, location)
    _begin(interceptor.rec)
    return interceptor


def _made(broker, settings, location):
    # What passes before _begin() is not recorded.
    size, budget = _sizes(broker, settings)
    most = max(2, budget // size)
    stops = _setting(settings, "record_full") == "stop"
    about = broker.sessions.names, broker.conns.session, broker.limits, settings.record, stops
    rec = _class()(location, size, most, *about)
    remote = _setting(settings, "remote_admin")
    broker._loop()
    rec.now = broker.now
    interval = _setting(settings, "record_flush_interval")
    interceptor = RecordInterceptor(broker, rec, interval, remote)
    interceptors = ondemand.take("interceptors", 0)
    interceptors.recorder(broker, interceptor)
    if _setting(settings, "record_events"):
        interceptors.record_events(broker, interceptor)
    rec.retry_at = NEVER
    if ondemand.IS_SMALL:
        for made in (rec, interceptor, rec.topics, broker.messages.arena):
            type(made).__init__ = None
    return interceptor


def _class():
    if ondemand.IS_SMALL:
        return Recorder
    from slotmq.recorder.flush import SyncingRecorder

    return SyncingRecorder


def _begin(rec):
    # From now on the recorder takes records.
    there = files.look(rec)
    newest = files.header(rec, there[-1]) if there else None
    rec.board, rec.boot = _identity(rec.folder, newest)
    rec.retry_at = 0
    control = ondemand.take("recorder.segments", 0)
    if newest and rec.stops:
        control.note_boots(rec, newest[0])
    control.next_segment(rec, 0)
    control.event(rec, _BOOT, bytes((_cause(),)))
    seconds = time.time()
    if time.gmtime(0)[0] == 2000:
        seconds += YEAR_2000
    if seconds > CLOCK_IS_SET:
        whole = int(seconds)
        anchor(rec, _RTC, whole, int((seconds - whole) * 1000), _RTC_ERROR)
    if rec.is_open:
        log.write(INFO, "Recording: boot %d, segment %08x." % (rec.boot, rec.segment))
    elif rec.gap == FAILED:
        log.write(WARNING, "Recording: nothing, there is no space to write; it is tried again.")
    else:
        log.write(WARNING, "Recording: nothing, the ring of %d segments is full." % len(there))
    if ondemand.IS_SMALL:
        ondemand.forget_all()
    else:
        rec.unsynced = rec.segment


def _cause():
    try:
        from machine import reset_cause

        return reset_cause() & 255
    except ImportError:
        return 0


def _identity(folder, newest):
    # The board's id and the number of this start, which is stored before anything else.
    known, boot = _read(folder + IDENTITY)
    board = known
    unique = _unique()
    if unique and unique != board:
        # Another board's files, or none. After the loss of a ring, boot must not be 1 again.
        boot = int.from_bytes(os.urandom(3), "big") << 4
    board = unique or board or os.urandom(8)
    boot = max(boot, newest[0] if newest else 0) + 1
    try:
        files.keep(folder, board, boot)
    except OSError as error:
        if board != known or error.errno not in _NO_SPACE:
            raise
        # The disk is full, so this start has no record before a segment, which has its number too.
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


def _sizes(broker, settings):
    # (bytes of a segment, of all). A computer could fill a board's in a millisecond.
    more = _COMPUTERS if broker.limits.rx_bytes > 8192 else 0
    return (
        _setting(settings, "record_segment_size", more),
        _setting(settings, "record_budget", more),
    )


def _setting(settings, name, more=0):
    # getattr() would intern the name for ever
    return settings.__dict__.get(name, DEFAULTS[name] << more if more else DEFAULTS[name])


def _make(folder):
    try:
        os.mkdir(folder[:-1])
    except OSError as error:
        if error.errno != _EEXIST:
            raise
