# segments.py - the recorder's rare tasks: begins the next segment, makes space for it, records
# losses and events. In events `record` is the RecordInterceptor, `rec` the Recorder. Loaded on
# demand; allocates. Owns nothing: what must be remembered is in the Recorder.
import gc
from struct import pack

from slotmq.constants import (EXTRA, NEVER, NONE, REC_CLIENT, REC_FILL, REC_SEQ, REC_SPACE,
    REC_THIS, STOPPING, SUBSCRIBE_TYPE, TAKEN_OVER, UNWANTED, WARNING)
from slotmq.platform import log, ondemand
from slotmq.platform.runtime import MICROPYTHON
from slotmq.recorder import files
from slotmq.recorder.files import SEGMENT_HEAD
from slotmq.recorder.wall_clock import write_time
from slotmq.recorder.writer import STOPPED

_TOLD = 2  # in is_full: the log has a line of it
_TOLD_NOTHING = 4  # the same, since nothing is written
_EVENT = 3
_GOODBYE = 1  # reasons
_IS_CONNECTED = 2  # events
_IS_DISCONNECTED, _IS_WILL, _TAKEOVER = range(3, 6)
_TABLE_FULL = 7
_LOW = 8
_TIME_PASSES = 10
_STEP = 1024  # the heap must be lower by so many bytes for another event
_GAP = 5
_SUBSCRIBED = 0x603  # EVENT, with its flags from bit 8 on
_UNSUBSCRIBED = 0x903
_GAP_BYTES = 36
_OVERWRITTEN = 1
_STOPPED_FOR = 600  # tenths of a second, between two looks for space in a full ring
_NO_SEGMENT = 0xFFFFFFFF
_TO_THE_END = 0xFFFFFFFF  # an unknown number of records
_MOST_SEQ = 0x3FF00000  # beyond it, a segment could need numbers that take heap


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
    return rec.o[REC_SPACE] >= need  # else many GAPs have taken its space


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
        log.write(WARNING, text)


def _forget_written_gaps(rec):
    if rec.written:  # the segment has its GAP records
        rec.gaps = []
        rec.written = 0


def begin(rec):
    """Open the next segment, and record what was lost."""
    o = rec.o
    first = _first_lost(rec)
    if o[REC_SEQ] >= _MOST_SEQ:
        first = _next_boot(rec, first)
    rec.out[:SEGMENT_HEAD] = files.begin(rec, max(rec.newest, rec.segment) + 1)
    # The new GAP includes those of a segment that failed before its first block.
    rec.gaps = [lost for lost in rec.gaps if lost[0] == _OVERWRITTEN or lost[1] != rec.boot]
    if o[REC_SEQ] > first:
        rec.lost += o[REC_SEQ] - first
        rec.gaps.append((rec.gap, rec.boot, first, o[REC_SEQ] - first, _NO_SEGMENT))
    rec.gap = 0
    rec.lost_from = first
    o[REC_FILL] = SEGMENT_HEAD
    rec.done = 0
    o[REC_SPACE] = rec.size - SEGMENT_HEAD - (_GAP_BYTES if rec.stops else 0)
    o[REC_THIS] += 1  # no id is defined in the new segment
    if o[REC_THIS] > 255:
        o[REC_THIS] = UNWANTED + 1
        for defined in rec.defined:
            for i in range(len(defined)):
                defined[i] = defined[i] == UNWANTED
    rec.is_open = True
    client = o[REC_CLIENT]
    o[REC_CLIENT] = NONE
    for lost in rec.gaps:
        gap(rec, *lost)
    write_time(rec)
    o[REC_CLIENT] = client
    rec.head_is_current = False


def _next_boot(rec, first):
    # All seq numbers of this boot are used: go on as after a start. -> the first seq
    files.keep(rec.folder, rec.board, rec.boot + 1)
    _forget_written_gaps(rec)
    if rec.o[REC_SEQ] > first:
        rec.gaps.append((rec.gap, rec.boot, first, rec.o[REC_SEQ] - first, _NO_SEGMENT))
    rec.boot += 1
    rec.gap = rec.lost_from = rec.o[REC_SEQ] = 0
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
        rec.o[REC_SPACE] = 0
        files.close(rec)
    return True


def _stop(rec):
    # The ring is full: the last segment has space reserved for the GAP that says so.
    if rec.is_open:
        seq = rec.o[REC_SEQ]
        rec.o[REC_SPACE] += _GAP_BYTES
        client = rec.o[REC_CLIENT]
        rec.o[REC_CLIENT] = NONE
        gap(rec, STOPPED, rec.boot, seq + 1, _TO_THE_END, _NO_SEGMENT)
        rec.o[REC_CLIENT] = client
        finish(rec)
    if rec.gap and rec.o[REC_SEQ] >= _MOST_SEQ:
        _next_boot(rec, rec.lost_from)
    if not rec.gap:
        rec.gap = STOPPED
        rec.lost_from = rec.o[REC_SEQ]
    rec.o[REC_SPACE] = 0
    rec.retry_at = rec.now + _STOPPED_FOR


def _first_lost(rec):
    # The first seq that no segment has; in one that failed, the first after its whole records.
    if not rec.gap:
        return rec.o[REC_SEQ]
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
    rec.put(_GAP | reason << 8, NONE, pack("<IIII", boot, seq, count, segment), 0, 16)


def event(rec, code, detail, client=NONE, topic=NONE):
    """Write an EVENT."""
    rec.o[REC_CLIENT] = client
    rec.put(_EVENT | code << 8, topic, detail, 0, len(detail))


def note_boots(rec, boot):
    """Note starts since `boot` that found a full ring: all their records are lost."""
    for lost in range(max(boot + 1, rec.boot - 8), rec.boot):
        rec.gaps.append((STOPPED, lost, 0, _TO_THE_END, _NO_SEGMENT))


def time(record, _conn, _now):
    """Called every three days: write the time, so that a reader sees each wrap of the ticks."""
    record.rec.o[REC_CLIENT] = NONE
    write_time(record.rec)
    if not record.rec.wall:
        event(record.rec, _TIME_PASSES, b"")


# Clients


def connected(record, conn, level):
    """A client is connected."""
    event(record.rec, _IS_CONNECTED, bytes((level,)), record.broker.conns.session[conn])


def ended(record, conn, reason):
    """A connection ends, and why."""
    rec = record.rec
    sessions = record.broker.sessions
    session = record.broker.conns.session[conn]
    event(rec, _IS_DISCONNECTED, bytes((reason,)), session)
    if reason == TAKEN_OVER:
        event(rec, _TAKEOVER, b"", session)
    if reason != _GOODBYE and reason != STOPPING and sessions.will[session] != NONE:
        event(rec, _IS_WILL, b"", session)


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
        rec.o[REC_CLIENT] = broker.conns.session[conn]
        rec.put(_SUBSCRIBED if kind == SUBSCRIBE_TYPE else _UNSUBSCRIBED, NONE, buf, at + 2, n)
        at += 2 + n + (1 if kind == SUBSCRIBE_TYPE else 0)


def will(record, msg, session):
    """A will is published, whose message is in a slot."""
    messages = record.broker.messages
    name = bytearray(messages.topic_len[msg])
    data = bytearray(messages.payload_len[msg])
    messages.read_topic(msg, name, 0)
    messages.arena.move(messages.first[msg], 2 + len(name), data, 0, len(data), 1)
    flags = messages.flags[msg]
    at = record.broker.five.props[msg] if flags & EXTRA else 0
    flags = flags >> 1 & 3 | (flags & 1) << 2
    record.rec.message(session, name, 0, len(name), flags, data, at, len(data) - at)


def close(rec):
    """Complete the segment; nothing follows."""
    rec.flush()
    files.close(rec)
    rec.is_open = False
    rec.o[REC_SPACE] = 0
    rec.retry_at = NEVER


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
