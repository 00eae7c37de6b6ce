# segments.py - the recorder's rare tasks: begins the next segment, makes space for it, records
# losses and events. In events `record` is the RecordInterceptor, `rec` the Recorder. Loaded on
# demand; allocates. Owns nothing: what must be remembered is in the Recorder.
import gc
from struct import pack

from slotmq.platform import log, ondemand
from slotmq.platform.runtime import MICROPYTHON, const
from slotmq.recorder import files
from slotmq.recorder.files import SEGMENT_HEAD
from slotmq.recorder.wall_clock import write_time
from slotmq.recorder.writer import STOPPED

_NONE = const(0xFFFF)
_TOLD = const(2)  # in is_full: the log has a line of it
_TOLD_NOTHING = const(4)  # the same, since nothing is written
_WARNING = const(2)
_FILL = const(0)
_SEQ = const(4)
_SPACE = const(7)
_CLIENT = const(8)
_EVENT = const(3)
_THIS = const(15)
_UNWANTED = const(1)  # in defined, see recorder/writer.py
_EXTRA = const(8)  # of a message: it has properties
_GOODBYE = const(1)  # reasons
_TAKEN_OVER = const(7)
_STOPPING = const(10)
_CONNECTED = const(2)  # events
_DISCONNECTED = const(3)
_WILL = const(4)
_TAKEOVER = const(5)
_TABLE_FULL = const(7)
_LOW = const(8)
_TIME_PASSES = const(10)
_STEP = const(1024)  # the heap must be lower by so many bytes for another event
_GAP = const(5)
_SUBSCRIBE = const(8)  # the packet
_SUBSCRIBED = const(0x603)  # EVENT, with its flags from bit 8 on
_UNSUBSCRIBED = const(0x903)
_NEVER = const(0x3FFFFFFF)
_GAP_BYTES = const(36)
_OVERWRITTEN = const(1)
_STOPPED_FOR = const(600)  # tenths of a second, between two looks for space in a full ring
_NO_SEGMENT = 0xFFFFFFFF
_TO_THE_END = 0xFFFFFFFF  # an unknown number of records
_MOST_SEQ = const(0x3FF00000)  # beyond it, a segment could need numbers that take heap


def next_segment(rec, need):
    """Begin a segment that has space for `need` bytes; did that succeed?"""
    try:
        there = files.look(rec)
        if not rec.is_open:
            _clear_away(rec, there)
        if rec.is_full & 1:
            _lower(rec, there)
        if len(there) >= rec.most and rec.stops:
            _stop(rec)
            return False
        if not finish(rec):
            return False
        _forget_written_gaps(rec)
        while len(there) >= rec.most:
            rec.gaps.append(_overwritten(rec, there))
        begin(rec)
    except OSError as error:
        rec.failed(error)
        return False
    return rec.o[_SPACE] >= need  # else many GAPs have taken its space


def _lower(rec, there):
    # The file system is full: from now on the ring has fewer segments, or two that are shorter.
    told = rec.is_full
    n = max(2, len(there) - 1)
    if rec.stops or n >= rec.most and not rec.written:
        rec.is_full = told & _TOLD | _TOLD_NOTHING
        is_told = told & _TOLD_NOTHING
        text = "Recording: nothing, the file system is full; it is tried again."
    else:
        rec.is_full = _TOLD
        is_told = n >= rec.most and told & _TOLD
        text = "Recording: the file system is full; from now on the ring has %d segments." % n
        if n >= rec.most:
            text = "Recording: the file system is full before the ring's %d segments are." % n
        rec.most = min(n, rec.most)
    if not is_told:
        log.write(_WARNING, text)


def _forget_written_gaps(rec):
    if rec.written:  # the segment has its GAP records
        rec.gaps = []
        rec.written = 0


def begin(rec):
    """Open the next segment, and record what was lost."""
    o = rec.o
    first = _first_lost(rec)
    if o[_SEQ] >= _MOST_SEQ:
        first = _next_boot(rec, first)
    rec.out[:SEGMENT_HEAD] = files.begin(rec, max(rec.newest, rec.segment) + 1)
    # The new GAP includes those of a segment that failed before its first block.
    rec.gaps = [lost for lost in rec.gaps if lost[0] == _OVERWRITTEN or lost[1] != rec.boot]
    if o[_SEQ] > first:
        rec.lost += o[_SEQ] - first
        rec.gaps.append((rec.gap, rec.boot, first, o[_SEQ] - first, _NO_SEGMENT))
    rec.gap = 0
    rec.lost_from = first
    o[_FILL] = SEGMENT_HEAD
    rec.done = 0
    o[_SPACE] = rec.size - SEGMENT_HEAD - (_GAP_BYTES if rec.stops else 0)
    o[_THIS] += 1  # no id is defined in the new segment
    if o[_THIS] > 255:
        o[_THIS] = _UNWANTED + 1
        for defined in rec.defined:
            for i in range(len(defined)):
                defined[i] = defined[i] == _UNWANTED
    rec.is_open = True
    client = o[_CLIENT]
    o[_CLIENT] = _NONE
    for lost in rec.gaps:
        gap(rec, *lost)
    write_time(rec)
    o[_CLIENT] = client
    rec.head_is_current = False


def _next_boot(rec, first):
    # All seq numbers of this boot are used: go on as after a start. -> the first seq
    files.keep(rec.folder, rec.board, rec.boot + 1)
    _forget_written_gaps(rec)
    if rec.o[_SEQ] > first:
        rec.gaps.append((rec.gap, rec.boot, first, rec.o[_SEQ] - first, _NO_SEGMENT))
    rec.boot += 1
    rec.gap = rec.lost_from = rec.o[_SEQ] = 0
    return 0


def _clear_away(rec, there):
    # Removes a newest segment that has no header, after a failed write or a power cut.
    files.close(rec)
    if there and 0 <= files.size(rec, there[-1]) < SEGMENT_HEAD:
        rec.newest = there.pop() - 1
        files.remove(rec, rec.newest + 1)
        rec.segment = min(rec.segment, rec.newest)


def finish(rec):
    """End the current segment; on a computer, the next flush syncs it. False: that failed."""
    if rec.is_open:
        if not (rec.flush() if ondemand.IS_SMALL else rec.settle(True)):
            return False
        rec.is_open = False
        rec.o[_SPACE] = 0
        files.close(rec)
    return True


def _stop(rec):
    # The ring is full: the last segment has space reserved for the GAP that says so.
    if rec.is_open:
        seq = rec.o[_SEQ]
        rec.o[_SPACE] += _GAP_BYTES
        client = rec.o[_CLIENT]
        rec.o[_CLIENT] = _NONE
        gap(rec, STOPPED, rec.boot, seq + 1, _TO_THE_END, _NO_SEGMENT)
        rec.o[_CLIENT] = client
        finish(rec)
    if rec.gap and rec.o[_SEQ] >= _MOST_SEQ:
        _next_boot(rec, rec.lost_from)
    if not rec.gap:
        rec.gap = STOPPED
        rec.lost_from = rec.o[_SEQ]
    rec.o[_SPACE] = 0
    rec.retry_at = rec.now + _STOPPED_FOR


def _first_lost(rec):
    # The first seq that no segment has; in one that failed, the first after its whole records.
    if not rec.gap:
        return rec.o[_SEQ]
    if rec.gap != STOPPED and rec.segment >= 0:
        head = files.header(rec, rec.segment)
        if head and head[0] == rec.boot:
            return files.end(rec, rec.segment)
    return rec.lost_from


def _overwritten(rec, there):
    # Removes the oldest segment; -> the fields of its GAP.
    oldest = there.pop(0)
    head = files.header(rec, oldest)
    after = files.header(rec, there[0]) if there else None
    lost = (_OVERWRITTEN, 0, 0, 0, oldest)
    if head:
        end = after[1] if after and after[0] == head[0] else files.end(rec, oldest)
        lost = (_OVERWRITTEN, head[0], head[1], end - head[1], oldest)
    files.remove(rec, oldest)
    if there:
        rec.first = there[0]
    return lost


def gap(rec, reason, boot, seq, count, segment):
    """Write a GAP: records were lost."""
    rec.put(_GAP | reason << 8, _NONE, pack("<IIII", boot, seq, count, segment), 0, 16)


def event(rec, code, detail, client=_NONE, topic=_NONE):
    """Write an EVENT."""
    rec.o[_CLIENT] = client
    rec.put(_EVENT | code << 8, topic, detail, 0, len(detail))


def note_boots(rec, boot):
    """Note starts since `boot` that found a full ring: all their records are lost."""
    for lost in range(max(boot + 1, rec.boot - 8), rec.boot):
        rec.gaps.append((STOPPED, lost, 0, _TO_THE_END, _NO_SEGMENT))


def time(record, _conn, _now):
    """Called every three days: write the time, so that a reader sees each wrap of the ticks."""
    record.rec.o[_CLIENT] = _NONE
    write_time(record.rec)
    if not record.rec.wall:
        event(record.rec, _TIME_PASSES, b"")


# Clients


def connected(record, conn, level):
    """A client is connected."""
    event(record.rec, _CONNECTED, bytes((level,)), record.broker.conns.session[conn])


def ended(record, conn, reason):
    """A connection ends, and why."""
    rec = record.rec
    sessions = record.broker.sessions
    session = record.broker.conns.session[conn]
    event(rec, _DISCONNECTED, bytes((reason,)), session)
    if reason == _TAKEN_OVER:
        event(rec, _TAKEOVER, b"", session)
    if reason != _GOODBYE and reason != _STOPPING and sessions.will[session] != _NONE:
        event(rec, _WILL, b"", session)


def subscribe(record, conn, kind):
    """SUBSCRIBE or UNSUBSCRIBE: one event for each filter. Version 5 has properties first."""
    buf, at, end = record.buf, record.at, record.to
    broker = record.broker
    rec = record.rec
    if broker.conns.level[conn] == 5:
        n = shift = 0
        more = 128
        while more & 128:
            more = buf[at]
            n |= (more & 127) << shift
            shift += 7
            at += 1
        at += n
    while at + 2 <= end:
        n = buf[at] << 8 | buf[at + 1]
        rec.o[_CLIENT] = broker.conns.session[conn]
        rec.put(_SUBSCRIBED if kind == _SUBSCRIBE else _UNSUBSCRIBED, _NONE, buf, at + 2, n)
        at += 2 + n + (1 if kind == _SUBSCRIBE else 0)


def will(record, msg, session):
    """A will is published, whose message is in a slot."""
    messages = record.broker.messages
    name = bytearray(messages.topic_len[msg])
    data = bytearray(messages.payload_len[msg])
    messages.read_topic(msg, name, 0)
    messages.arena.move(messages.first[msg], 2 + len(name), data, 0, len(data), 1)
    flags = messages.flags[msg]
    at = record.broker.five.props[msg] if flags & _EXTRA else 0
    flags = flags >> 1 & 3 | (flags & 1) << 2
    record.rec.message(session, name, 0, len(name), flags, data, at, len(data) - at)


def close(rec):
    """Complete the segment; nothing follows."""
    rec.flush()
    files.close(rec)
    rec.is_open = False
    rec.o[_SPACE] = 0
    rec.retry_at = _NEVER


# Full tables

_TABLES = """\
connections conns.refused
sessions sessions.refused
subscriptions subscriptions.refused
nodes subscriptions.nodes_refused
messages messages.refused
deliveries deliveries.refused
retained retained.refused
received sessions.ids_refused
"""


def look(record, _conn, _now):
    """Record which tables have refused something since the last look, and a new low of heap."""
    rows = [line.split() for line in _TABLES.split("\n") if line]
    counts = []
    for i in range(len(rows)):
        table, name = rows[i][1].split(".")
        counts.append(getattr(getattr(record.broker, table), name))
        if counts[i] > (record.counts[i] if record.counts else 0):
            event(record.rec, _TABLE_FULL, rows[i][0].encode())
    record.counts = counts
    if MICROPYTHON:
        gc.collect()
        free = gc.mem_free()
        if free < record.low - _STEP:
            record.low = free
            event(record.rec, _LOW, pack("<I", free))
