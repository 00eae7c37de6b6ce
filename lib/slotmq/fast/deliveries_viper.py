# deliveries_viper.py - the steps of a delivery on MicroPython, in viper: fan and append, send,
# acked and finish; the states are in tables/deliveries.py. Nothing here allocates. o or c: the
# table of columns, fast/columns.py. x ^ NONE is true if x is not none.
import micropython

from slotmq.constants import (CHANGED, C_COUNTS, D_COUNT, D_FLAGS, D_IS_PENDING, D_MSG, D_NEXT,
    D_PENDING, D_PREV, D_SESSION, D_SLOTS, D_STATE, D_WINDOW, EXTRA, FIRST_FREE, FREE, IN_USE,
    LAST, LAST_FREE, MAX_INFLIGHT, MAX_QUEUED, MOST_IN_USE, M_FLAGS, M_REFS, NONE, ONE,
    PENDING_COUNT, PUBLISHES, QUEUED, QUOTAS_FROM, RELEASED, SENT_2, S_CONN, S_CURSOR, S_HEAD,
    S_INFLIGHT, S_QUEUED, S_SCANS, S_TAIL, UNSAVED)
from slotmq.fast.messages_viper import put_publish, unref

_ANY = 64


def append(c, session, msg, flags):
    # Queues msg at the end of the session's list, with a reference, and the session for a
    # drain if it is connected; -> the entry, or 0xFFFF: the table is full.
    c[ONE] = session << 2
    c[LAST] = NONE
    fan(c, c, 2 * ONE, 2 * ONE + 1, msg, _ANY | flags)
    return c[LAST]


# Queues msg for the route entries i..end at the lower of qos and the granted QoS. -> the
# first that has QoS 0 or no space, or end. msg -1: only checks. qos _ANY | flags: append().
@micropython.viper
def fan(o: ptr32, pool: ptr16, i: int, end: int, msg: int, qos: int) -> int:
    count = ptr32(int(o) - o[D_COUNT])
    window = ptr32(int(o) - o[D_WINDOW])
    if not msg + 1 and count[IN_USE] + end - i > count[QUOTAS_FROM]:
        return i
    while i < end and count[FIRST_FREE] ^ NONE:
        session = pool[i] >> 2
        flags = pool[i] & 3
        online = ptr16(int(o) - o[S_CONN])[session] ^ NONE
        if qos >> 6:
            flags = qos & 31
        else:
            if flags > qos:
                flags = qos
            waiting = ptr16(int(o) - o[S_QUEUED])[session] - window[MAX_QUEUED]
            if online:
                waiting += ptr16(int(o) - o[S_INFLIGHT])[session] - window[MAX_INFLIGHT]
            if not flags or waiting >= 0:
                return i
            flags <<= 1
        i += 1
        if not msg + 1:
            continue
        o[LAST] = entry = count[FIRST_FREE]
        nexts = ptr16(int(o) - o[D_NEXT])
        count[FIRST_FREE] = nexts[entry]
        if not count[FIRST_FREE] ^ NONE:
            count[LAST_FREE] = NONE
        count[IN_USE] = count[IN_USE] + 1
        if count[IN_USE] > count[MOST_IN_USE]:
            count[MOST_IN_USE] = count[IN_USE]
        ptr16(int(o) - o[D_SESSION])[entry] = session
        ptr16(int(o) - o[D_MSG])[entry] = msg
        ptr8(int(o) - o[D_STATE])[entry] = QUEUED
        ptr8(int(o) - o[D_FLAGS])[entry] = flags | CHANGED
        count[UNSAVED] = 1
        nexts[entry] = NONE
        tails = ptr16(int(o) - o[S_TAIL])
        tail = tails[session]
        tails[session] = entry
        ptr16(int(o) - o[D_PREV])[entry] = tail
        if not tail ^ NONE:
            nexts = ptr16(int(o) - o[S_HEAD])
            tail = session
        nexts[tail] = entry
        cells = ptr16(int(o) - o[S_CURSOR])
        if not cells[session] ^ NONE:
            cells[session] = entry
        cells = ptr16(int(o) - o[S_QUEUED])
        cells[session] = cells[session] + 1
        cells = ptr16(int(o) - o[M_REFS])
        cells[msg] = cells[msg] + 1
        is_pending = ptr8(int(o) - o[D_IS_PENDING])
        if online and not is_pending[session]:
            is_pending[session] = 1
            cells = ptr16(int(o) - o[D_PENDING])
            cells[PENDING_COUNT] = cells[PENDING_COUNT] + 1
            cells[cells[PENDING_COUNT]] = session
    return i


def finish(c, entry):
    # Removes an entry from its session's list and frees it, and its message with the last
    # reference.
    acked(c, 0, entry + 1, FREE)


# -> the entry with that packet id and state; 0xFFFF: there is none. PUBACK and PUBCOMP end it,
# PUBREC frees its message. state FREE is finish().
@micropython.viper
def acked(c, session: int, packet_id: int, state: int) -> int:
    o = ptr32(c)
    entry = packet_id - 1
    if entry < 0 or entry >= o[D_SLOTS]:
        return NONE
    cells = ptr16(int(o) - o[D_SESSION])
    states = ptr8(int(o) - o[D_STATE])
    if not state ^ FREE:
        session = cells[entry]
    elif cells[entry] ^ session or states[entry] ^ state:
        return NONE
    msg = ptr16(int(o) - o[D_MSG])[entry]
    count = ptr32(int(o) - o[D_COUNT])
    bits = ptr8(int(o) - o[D_FLAGS])
    ended = 2 | bits[entry] >> 2 & 1 if states[entry] ^ RELEASED else 2  # 3: no PUBCOMP
    bits[entry] = CHANGED | 4
    if state ^ SENT_2:
        cells[entry] = NONE
        nexts = ptr16(int(o) - o[D_NEXT])
        prevs = ptr16(int(o) - o[D_PREV])
        k = prevs[entry]
        after = nexts[entry]
        if after ^ NONE:
            prevs[after] = k
        else:
            ptr16(int(o) - o[S_TAIL])[session] = k
        cells = nexts
        if not k ^ NONE:
            cells = ptr16(int(o) - o[S_HEAD])
            k = session
        cells[k] = after
        cells = ptr16(int(o) - o[S_CURSOR])
        if not cells[session] ^ entry:
            cells[session] = after
        cells = ptr16(int(o) - o[S_INFLIGHT if states[entry] else S_QUEUED])
        cells[session] = cells[session] - 1
        states[entry] = FREE
        nexts[entry] = NONE
        count[UNSAVED] = count[UNSAVED] | ended
        if count[LAST_FREE] ^ NONE:
            nexts[count[LAST_FREE]] = entry
        else:
            count[FIRST_FREE] = entry
        count[LAST_FREE] = entry
        count[IN_USE] = count[IN_USE] - 1
    else:
        count[UNSAVED] = 1
        ptr16(int(o) - o[D_MSG])[entry] = NONE
        states[entry] = RELEASED
    bits = ptr8(int(o) - o[D_IS_PENDING])
    if state ^ FREE and not bits[session]:
        cells = ptr16(int(o) - o[S_CURSOR])
        if cells[session] ^ NONE or ptr16(int(o) - o[S_SCANS])[session]:
            bits[session] = 1
            cells = ptr16(int(o) - o[D_PENDING])
            cells[PENDING_COUNT] = cells[PENDING_COUNT] + 1
            cells[cells[PENDING_COUNT]] = session
    if msg ^ NONE:
        unref(c, msg)
    return entry


@micropython.viper
def send(c, session: int, conn: int, most: int) -> int:
    # PUBLISHes the session's deliveries from its cursor on, `most` at a time. -> 0: none is left
    # or the window is full; 1: the next one has no space; 2: it is a PUBREL, has QoS 0, or needs
    # other code: one that was sent before a reconnect and is not in the window, or has properties,
    # a group or an identifier.
    o = ptr32(c)
    cursors = ptr16(int(o) - o[S_CURSOR])
    states = ptr8(int(o) - o[D_STATE])
    flags = ptr8(int(o) - o[D_FLAGS])
    while cursors[session] ^ NONE:
        entry = cursors[session]
        if not states[entry] ^ RELEASED or not flags[entry] & 6:
            return 2
        inflight = ptr16(int(o) - o[S_INFLIGHT])
        if inflight[session] >= most:
            if not states[entry]:
                return 0
            if inflight[session] ^ most:
                return 2
        msg = ptr16(int(o) - o[D_MSG])[entry]
        if flags[entry] >> 6 or ptr8(int(o) - o[M_FLAGS])[msg] & EXTRA:
            return 2
        if not int(put_publish(c, conn, entry)):
            return 1
        counts = ptr32(int(o) - o[C_COUNTS])
        counts[PUBLISHES] = counts[PUBLISHES] + 1
        if not states[entry]:
            states[entry] = (flags[entry] >> 1) & 3
            flags[entry] = flags[entry] | 8
            inflight[session] = inflight[session] + 1
            inflight = ptr16(int(o) - o[S_QUEUED])
            inflight[session] = inflight[session] - 1
        cursors[session] = ptr16(int(o) - o[D_NEXT])[entry]
    return 0
