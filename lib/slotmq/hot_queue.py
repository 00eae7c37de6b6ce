# hot_queue.py - the life of a delivery on MicroPython, in viper: fan and append, send,
# acked and finish; deliveries.py tells the states. Nothing here allocates. Each takes
# one tuple of columns, which hot_messages.queue_columns makes.
import micropython
from micropython import const

from slotmq.hot import WORDS
from slotmq.hot_messages import unref

_NONE = const(0xFFFF)
_FREE = const(4)
_RELEASED = const(3)
_EXTRA = const(8)


@micropython.viper
def fan(c, pool, i: int, end: int, msg: int, qos: int) -> int:
    # Queues msg for the route entries i..end at the lower of qos and what was granted.
    # -> the first entry that needs another way (QoS 0, or its queue is full), or end.
    entries = ptr16(pool)
    window = ptr32(c[31])
    while i < end:
        granted = entries[i] & 3
        session = entries[i] >> 2
        if granted > qos:
            granted = qos
        waiting = ptr16(c[10])[session]
        most = window[1]
        if ptr16(c[28])[session] != _NONE:
            waiting += ptr16(c[11])[session]
            most += window[0]
        if granted == 0 or waiting >= most or ptr32(c[6])[2] == _NONE:
            return i
        append(c, session, msg, granted << 1)
        i += 1
    return end


@micropython.viper
def have_room(c, pool, i: int, end: int) -> int:
    # 1 where every route entry i..end can have a message queued, and none takes QoS 0.
    entries = ptr16(pool)
    window = ptr32(c[31])
    if ptr32(c[6])[0] + (end - i) > int(len(c[3])):
        return 0
    while i < end:
        session = entries[i] >> 2
        waiting = ptr16(c[10])[session]
        most = window[1]
        if ptr16(c[28])[session] != _NONE:
            waiting += ptr16(c[11])[session]
            most += window[0]
        if entries[i] & 3 == 0 or waiting >= most:
            return 0
        i += 1
    return 1


@micropython.viper
def append(c, session: int, msg: int, flags: int) -> int:
    # Queues msg at the session's end, with a reference, and the session for a pump
    # if it is connected; the entry, or 0xFFFF: the table is full.
    nexts = ptr16(c[3])
    count = ptr32(c[6])
    entry = count[2]
    if entry == _NONE:
        return _NONE
    count[2] = nexts[entry]
    if count[2] == _NONE:
        count[3] = _NONE
    count[0] += 1
    if count[0] > count[1]:
        count[1] = count[0]
    ptr16(c[0])[entry] = session
    ptr16(c[1])[entry] = msg
    ptr8(c[4])[entry] = 0
    ptr8(c[5])[entry] = flags
    tails = ptr16(c[8])
    tail = tails[session]
    ptr16(c[2])[entry] = tail
    nexts[entry] = _NONE
    if tail == _NONE:
        ptr16(c[7])[session] = entry
    else:
        nexts[tail] = entry
    tails[session] = entry
    cursors = ptr16(c[9])
    if cursors[session] == _NONE:
        cursors[session] = entry
    ptr16(c[10])[session] += 1
    ptr16(c[15])[msg] += 1
    if ptr8(c[30])[session] == 0 and ptr16(c[28])[session] != _NONE:
        mark_pending(c, session)
    return entry


@micropython.viper
def mark_pending(c, session: int):
    # The session, which is not marked yet, has something to send: the loop pumps it
    # (Broker.go_on).
    ptr8(c[30])[session] = 1
    pending = ptr16(c[29])
    pending[0] += 1
    pending[pending[0]] = session


@micropython.viper
def acked(c, session: int, packet_id: int, state: int) -> int:
    # The entry of a packet id in that state; PUBACK and PUBCOMP end it, PUBREC frees
    # its message. 0xFFFF: there is none.
    entry = packet_id - 1
    if entry < 0 or entry >= int(len(c[3])):
        return _NONE
    if ptr16(c[0])[entry] != session or ptr8(c[4])[entry] != state:
        return _NONE
    if state == 2:
        ptr8(c[4])[entry] = _RELEASED
        unref(c, ptr16(c[1])[entry])
        ptr16(c[1])[entry] = _NONE
    else:
        finish(c, entry)
    if ptr8(c[30])[session] == 0:
        if ptr16(c[9])[session] != _NONE or ptr16(c[34])[session]:
            mark_pending(c, session)
    return entry


@micropython.viper
def finish(c, entry: int):
    # Takes an entry out of its session's list and frees it, and its message with
    # the last reference.
    nexts = ptr16(c[3])
    prevs = ptr16(c[2])
    states = ptr8(c[4])
    count = ptr32(c[6])
    session = ptr16(c[0])[entry]
    before = prevs[entry]
    after = nexts[entry]
    if before == _NONE:
        ptr16(c[7])[session] = after
    else:
        nexts[before] = after
    if after == _NONE:
        ptr16(c[8])[session] = before
    else:
        prevs[after] = before
    cursors = ptr16(c[9])
    if cursors[session] == entry:
        cursors[session] = after
    if states[entry] == 0:
        ptr16(c[10])[session] -= 1
    else:
        ptr16(c[11])[session] -= 1
    states[entry] = _FREE
    ptr16(c[0])[entry] = _NONE
    nexts[entry] = _NONE
    if count[3] == _NONE:
        count[2] = entry
    else:
        nexts[count[3]] = entry
    count[3] = entry
    count[0] -= 1
    msg = ptr16(c[1])[entry]
    if msg != _NONE:
        unref(c, msg)


@micropython.viper
def send(c, session: int, conn: int) -> int:
    # PUBLISHes the session's deliveries from its cursor on. -> 0: none is left or
    # the window is full; 1: the next one has no room; 2: it is a PUBREL, QoS 0,
    # or version 5 has something with the message.
    states = ptr8(c[4])
    cursors = ptr16(c[9])
    inflight = ptr16(c[11])
    window = ptr32(c[31])[0]
    entry = cursors[session]
    while entry != _NONE:
        flags = ptr8(c[5])[entry]
        if states[entry] == _RELEASED or flags & 6 == 0:
            return 2
        if states[entry] == 0 and inflight[session] >= window:
            return 0
        if ptr8(c[33])[ptr16(c[1])[entry]] & _EXTRA:
            return 2
        if int(put_publish(c, conn, ptr16(c[1])[entry], 0x30 | flags, entry + 1)) == 0:
            return 1
        if states[entry] == 0:
            states[entry] = (flags >> 1) & 3
            ptr8(c[5])[entry] = flags | 8
            ptr16(c[10])[session] -= 1
            inflight[session] += 1
        entry = ptr16(c[3])[entry]
        cursors[session] = entry
    return 0


@micropython.viper
def put_publish(c, conn: int, msg: int, first: int, packet_id: int) -> int:
    # A QoS 1 or 2 PUBLISH of a stored message into tx; 0 where it has no room.
    tx_end = ptr32(c[23])
    left = ptr16(c[13])[msg] + 2
    payload = ptr32(c[14])[msg]
    rest = left + payload + 2
    n = rest + 2
    if rest > 127:
        n += 1
    if rest > 16383:
        n += 1
    if rest > 2097151:
        n += 1
    at = tx_end[conn]
    if at + n > ptr32(c[24])[conn]:
        return 0
    tx_end[conn] = at + n
    out = ptr8(c[22])
    counts = ptr32(c[27])
    counts[1] += 1
    if out[conn] == 0:
        out[conn] = 1
        ptr16(c[26])[counts[0]] = conn
        counts[0] += 1
    tx = ptr8(c[25])
    tx[at] = first
    at += 1
    while rest > 127:
        tx[at] = rest & 127 | 128
        at += 1
        rest >>= 7
    tx[at] = rest
    at += 1
    # topic length and topic, packet id, payload
    text_to_tx(c, ptr16(c[12])[msg], 0, left, at)
    at += left
    tx[at] = packet_id >> 8
    tx[at + 1] = packet_id
    text_to_tx(c, ptr16(c[12])[msg], left, payload, at + 2)
    return n


@micropython.viper
def text_to_tx(c, block: int, at: int, left: int, to: int):
    # left bytes of a message's text, from its byte `at` on, to tx[to:]. (Addresses
    # are not passed: those above 1 GB, on the host, would be big integers.)
    chain = ptr16(c[19])
    size = int(c[21])
    data = int(ptr8(c[18]))
    d = int(ptr8(c[25])) + to
    mask = 3 - int(WORDS)
    while at >= size:
        block = chain[block]
        at -= size
    while left > 0:
        s = data + block * size + at
        part = size - at
        if part > left:
            part = left
        stop = s + part
        if ((d | s) & mask) == 0:
            words = stop - 3
            while s < words:
                ptr32(d)[0] = ptr32(s)[0]
                d += 4
                s += 4
        while s < stop:
            ptr8(d)[0] = ptr8(s)[0]
            d += 1
            s += 1
        left -= part
        at = 0
        block = chain[block]
