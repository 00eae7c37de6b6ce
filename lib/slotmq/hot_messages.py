# hot_messages.py - message slots and acknowledgements on MicroPython, in viper, and the
# tuple of columns that all of hot_queue.py and hot_lane.py walk. Nothing here
# allocates.
import micropython
from micropython import const

_NONE = const(0xFFFF)


def queue_columns(d, s, m, c):
    # Deliveries, Sessions, Messages and Connections as one tuple of columns.
    deliveries = (d.session, d.msg, d.prev, d.next, d.state, d.flags, d.count)
    sessions = (s.head, s.tail, s.cursor, s.queued, s.inflight)
    messages = (m.first, m.topic_len, m.payload_len, m.refs, m.next, m.count)
    arena = (m.arena.data, m.arena.next, m.arena.state, m.arena.size)
    conns = (c.out, c.tx_end, c.tx_limit, c.tx, c.dirty, c.counts)
    pending = (s.conn, d.pending, d.is_pending, d.window)
    rest = (m.arena.keep, m.flags, s.scans)
    return deliveries + sessions + messages + arena + conns + pending + rest


@micropython.viper
def store(c, buf, topic: int, topic_len: int, payload: int, payload_len: int, flags: int) -> int:
    # A message slot for topic (with its length before it) and payload of buf, with
    # one reference; 0xFFFF: no slot or no room.
    count = ptr32(c[17])
    nexts = ptr16(c[16])
    msg = count[2]
    if msg == int(len(c[16])):
        return _NONE
    first = int(c[32](buf, topic - 2, topic_len + 2, payload, payload_len))
    if first == _NONE:
        return _NONE
    count[2] = nexts[msg]
    count[0] += 1
    if count[0] > count[1]:
        count[1] = count[0]
    ptr16(c[12])[msg] = first
    ptr16(c[13])[msg] = topic_len
    ptr32(c[14])[msg] = payload_len
    ptr16(c[15])[msg] = 1
    ptr8(c[33])[msg] = flags
    return msg


@micropython.viper
def unref(c, msg: int):
    # One reference less; the last one frees the message and its blocks.
    refs = ptr16(c[15])
    refs[msg] -= 1
    if refs[msg]:
        return
    count = ptr32(c[17])
    ptr16(c[16])[msg] = count[2]
    count[2] = msg
    count[0] -= 1
    nexts = ptr16(c[19])
    state = ptr32(c[20])
    first = ptr16(c[12])[msg]
    block = first
    k = 1
    while nexts[block] != _NONE:
        block = nexts[block]
        k += 1
    nexts[block] = state[0]
    state[0] = first
    state[1] += k


@micropython.viper
def put_ack(c, conn: int, first: int, value: int):
    # Four bytes to the connection that is being read, whose room is certain.
    tx_end = ptr32(c[23])
    at = tx_end[conn]
    tx_end[conn] = at + 4
    d = ptr8(int(ptr8(c[25])) + at)
    d[0] = first
    d[1] = 2
    d[2] = value >> 8
    d[3] = value
    out = ptr8(c[22])
    if out[conn] == 0:
        out[conn] = 1
        counts = ptr32(c[27])
        ptr16(c[26])[counts[0]] = conn
        counts[0] += 1
