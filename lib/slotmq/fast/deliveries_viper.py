# deliveries_viper.py - the steps of a delivery on MicroPython, in viper: fan and append, send,
# acked and finish; the states are in tables/deliveries.py. Nothing here allocates. o or c: the
# table of columns, fast/columns.py. x ^ _NONE is true if x is not none.
import micropython
from micropython import const

from slotmq.fast.messages_viper import put_publish, unref

_NONE = const(0xFFFF)
_QUEUED = const(0)
_SENT_2 = const(2)
_RELEASED = const(3)
_FREE = const(4)
_ANY = const(64)
_EXTRA = const(8)
# Positions in count, window, counts and pending of tables/
_IN_USE = const(0)
_MOST_IN_USE = const(1)
_FIRST_FREE = const(2)
_LAST_FREE = const(3)
_UNSAVED = const(4)
_QUOTA_DELIVERIES = const(5)
_MAX_INFLIGHT = const(0)
_MAX_QUEUED = const(1)
_PUBLISHES = const(1)
_PENDING_COUNT = const(0)
# Indexes of the table of columns
_C_COUNTS = const(11)
_S_CONN = const(13)
_D_SESSION = const(14)
_D_MSG = const(15)
_D_PREV = const(16)
_D_NEXT = const(17)
_D_STATE = const(18)
_D_FLAGS = const(19)
_D_COUNT = const(20)
_S_HEAD = const(21)
_S_TAIL = const(22)
_S_CURSOR = const(23)
_S_QUEUED = const(24)
_S_INFLIGHT = const(25)
_D_IS_PENDING = const(26)
_D_WINDOW = const(27)
_M_REFS = const(28)
_M_FLAGS = const(34)
_D_PENDING = const(35)
_S_SCANS = const(36)
_D_SLOTS = const(55)
_CHANGED = const(32)  # in the flags of a delivery
_LAST = const(59)  # the entry that was appended last
_ONE = const(60)  # a route entry for append


def append(c, session, msg, flags):
    # Queues msg at the end of the session's list, with a reference, and the session for a
    # drain if it is connected; -> the entry, or 0xFFFF: the table is full.
    c[_ONE] = session << 2
    c[_LAST] = _NONE
    fan(c, c, 2 * _ONE, 2 * _ONE + 1, msg, _ANY | flags)
    return c[_LAST]


# Queues msg for the route entries i..end at the lower of qos and the granted QoS. -> the
# first that has QoS 0 or no space, or end. msg -1: only checks. qos _ANY | flags: append().
@micropython.viper
def fan(o: ptr32, pool: ptr16, i: int, end: int, msg: int, qos: int) -> int:
    count = ptr32(int(o) - o[_D_COUNT])
    window = ptr32(int(o) - o[_D_WINDOW])
    if not msg + 1 and count[_IN_USE] + end - i > count[_QUOTA_DELIVERIES]:
        return i
    while i < end and count[_FIRST_FREE] ^ _NONE:
        session = pool[i] >> 2
        flags = pool[i] & 3
        online = ptr16(int(o) - o[_S_CONN])[session] ^ _NONE
        if qos >> 6:
            flags = qos & 31
        else:
            if flags > qos:
                flags = qos
            waiting = ptr16(int(o) - o[_S_QUEUED])[session] - window[_MAX_QUEUED]
            if online:
                waiting += ptr16(int(o) - o[_S_INFLIGHT])[session] - window[_MAX_INFLIGHT]
            if not flags or waiting >= 0:
                return i
            flags <<= 1
        i += 1
        if not msg + 1:
            continue
        o[_LAST] = entry = count[_FIRST_FREE]
        nexts = ptr16(int(o) - o[_D_NEXT])
        count[_FIRST_FREE] = nexts[entry]
        if not count[_FIRST_FREE] ^ _NONE:
            count[_LAST_FREE] = _NONE
        count[_IN_USE] = count[_IN_USE] + 1
        if count[_IN_USE] > count[_MOST_IN_USE]:
            count[_MOST_IN_USE] = count[_IN_USE]
        ptr16(int(o) - o[_D_SESSION])[entry] = session
        ptr16(int(o) - o[_D_MSG])[entry] = msg
        ptr8(int(o) - o[_D_STATE])[entry] = _QUEUED
        ptr8(int(o) - o[_D_FLAGS])[entry] = flags | _CHANGED
        count[_UNSAVED] = 1
        nexts[entry] = _NONE
        tails = ptr16(int(o) - o[_S_TAIL])
        tail = tails[session]
        tails[session] = entry
        ptr16(int(o) - o[_D_PREV])[entry] = tail
        if not tail ^ _NONE:
            nexts = ptr16(int(o) - o[_S_HEAD])
            tail = session
        nexts[tail] = entry
        cells = ptr16(int(o) - o[_S_CURSOR])
        if not cells[session] ^ _NONE:
            cells[session] = entry
        cells = ptr16(int(o) - o[_S_QUEUED])
        cells[session] = cells[session] + 1
        cells = ptr16(int(o) - o[_M_REFS])
        cells[msg] = cells[msg] + 1
        is_pending = ptr8(int(o) - o[_D_IS_PENDING])
        if online and not is_pending[session]:
            is_pending[session] = 1
            cells = ptr16(int(o) - o[_D_PENDING])
            cells[_PENDING_COUNT] = cells[_PENDING_COUNT] + 1
            cells[cells[_PENDING_COUNT]] = session
    return i


def finish(c, entry):
    # Removes an entry from its session's list and frees it, and its message with the last
    # reference.
    acked(c, 0, entry + 1, _FREE)


# -> the entry with that packet id and state; 0xFFFF: there is none. PUBACK and PUBCOMP end it,
# PUBREC frees its message. state _FREE is finish().
@micropython.viper
def acked(c, session: int, packet_id: int, state: int) -> int:
    o = ptr32(c)
    entry = packet_id - 1
    if entry < 0 or entry >= o[_D_SLOTS]:
        return _NONE
    cells = ptr16(int(o) - o[_D_SESSION])
    states = ptr8(int(o) - o[_D_STATE])
    if not state ^ _FREE:
        session = cells[entry]
    elif cells[entry] ^ session or states[entry] ^ state:
        return _NONE
    msg = ptr16(int(o) - o[_D_MSG])[entry]
    count = ptr32(int(o) - o[_D_COUNT])
    bits = ptr8(int(o) - o[_D_FLAGS])
    ended = 2 | bits[entry] >> 2 & 1 if states[entry] ^ _RELEASED else 2  # 3: no PUBCOMP
    bits[entry] = _CHANGED | 4
    if state ^ _SENT_2:
        cells[entry] = _NONE
        nexts = ptr16(int(o) - o[_D_NEXT])
        prevs = ptr16(int(o) - o[_D_PREV])
        k = prevs[entry]
        after = nexts[entry]
        if after ^ _NONE:
            prevs[after] = k
        else:
            ptr16(int(o) - o[_S_TAIL])[session] = k
        cells = nexts
        if not k ^ _NONE:
            cells = ptr16(int(o) - o[_S_HEAD])
            k = session
        cells[k] = after
        cells = ptr16(int(o) - o[_S_CURSOR])
        if not cells[session] ^ entry:
            cells[session] = after
        cells = ptr16(int(o) - o[_S_INFLIGHT if states[entry] else _S_QUEUED])
        cells[session] = cells[session] - 1
        states[entry] = _FREE
        nexts[entry] = _NONE
        count[_UNSAVED] = count[_UNSAVED] | ended
        if count[_LAST_FREE] ^ _NONE:
            nexts[count[_LAST_FREE]] = entry
        else:
            count[_FIRST_FREE] = entry
        count[_LAST_FREE] = entry
        count[_IN_USE] = count[_IN_USE] - 1
    else:
        count[_UNSAVED] = 1
        ptr16(int(o) - o[_D_MSG])[entry] = _NONE
        states[entry] = _RELEASED
    bits = ptr8(int(o) - o[_D_IS_PENDING])
    if state ^ _FREE and not bits[session]:
        cells = ptr16(int(o) - o[_S_CURSOR])
        if cells[session] ^ _NONE or ptr16(int(o) - o[_S_SCANS])[session]:
            bits[session] = 1
            cells = ptr16(int(o) - o[_D_PENDING])
            cells[_PENDING_COUNT] = cells[_PENDING_COUNT] + 1
            cells[cells[_PENDING_COUNT]] = session
    if msg ^ _NONE:
        unref(c, msg)
    return entry


@micropython.viper
def send(c, session: int, conn: int, most: int) -> int:
    # PUBLISHes the session's deliveries from its cursor on, `most` at a time. -> 0: none is left
    # or the window is full; 1: the next one has no space; 2: it is a PUBREL, has QoS 0, or needs
    # other code: one that was sent before a reconnect and is not in the window, or has properties,
    # a group or an identifier.
    o = ptr32(c)
    cursors = ptr16(int(o) - o[_S_CURSOR])
    states = ptr8(int(o) - o[_D_STATE])
    flags = ptr8(int(o) - o[_D_FLAGS])
    while cursors[session] ^ _NONE:
        entry = cursors[session]
        if not states[entry] ^ _RELEASED or not flags[entry] & 6:
            return 2
        inflight = ptr16(int(o) - o[_S_INFLIGHT])
        if inflight[session] >= most:
            if not states[entry]:
                return 0
            if inflight[session] ^ most:
                return 2
        msg = ptr16(int(o) - o[_D_MSG])[entry]
        if flags[entry] >> 6 or ptr8(int(o) - o[_M_FLAGS])[msg] & _EXTRA:
            return 2
        if not int(put_publish(c, conn, entry)):
            return 1
        counts = ptr32(int(o) - o[_C_COUNTS])
        counts[_PUBLISHES] = counts[_PUBLISHES] + 1
        if not states[entry]:
            states[entry] = (flags[entry] >> 1) & 3
            flags[entry] = flags[entry] | 8
            inflight[session] = inflight[session] + 1
            inflight = ptr16(int(o) - o[_S_QUEUED])
            inflight[session] = inflight[session] - 1
        cursors[session] = ptr16(int(o) - o[_D_NEXT])[entry]
    return 0
