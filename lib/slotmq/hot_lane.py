# hot_lane.py - the lane for packets that need no decision, on MicroPython, in viper:
# PUBLISH whose receivers are known and have room, PUBACK, PUBREC, PUBCOMP, the usual
# PUBREL, PINGREQ. lane() handles a run of them where they were read and stops at the
# first other one, which goes the whole way (intake.py). Nothing here allocates.
import micropython
from micropython import const

from slotmq.hot import WORDS, find_id, next_packet
from slotmq.hot_messages import put_ack, store, unref
from slotmq.hot_queue import acked, append, have_room

_NONE = const(0xFFFF)
_CONNECTED = const(2)
_FLAGS = const(1)
_END = const(4)
_PACKET_ID = const(6)
_TOPIC = const(7)
_TOPIC_LEN = const(8)
_PAYLOAD = const(9)
_PACKET_MAX = const(10)
_PACKETS_IN = const(0)
_PACKETS_OUT = const(1)
_PUBLISH_IN = const(2)
_BYTES_IN = const(5)


def lane_columns(broker):
    # What the lane walks, as one tuple.
    s = broker.sessions
    c = broker.conns
    routes = broker.subscriptions.routes
    first = (broker.queue, c.session, broker.stats, broker.clock, broker.pkt)
    ids = (s.ids, s.id_count, s.received, s.progress)
    way = (routes.columns, routes.first, routes.end, c.columns, s.id_msg is None, routes.find)
    state = (c.state, c.held, c.bigs)
    return first + ids + way + state + (s.ids_high, c.heard)


@micropython.viper
def may_read(c, conn: int) -> int:
    # How many bytes may be read from a connected client that the lane can serve; 0:
    # intake.readable must be asked. Notes that it was heard of.
    p = c[12]
    if ptr8(c[15])[conn] != _CONNECTED or ptr32(c[16])[conn]:
        return 0
    ptr32(c[19])[conn] = ptr32(c[3])[0]
    room = ptr32(p[4])[conn] - ptr32(p[3])[conn]
    most = ptr32(c[17])[3]
    if room > most:
        return most
    return room if room > 0 and room > most >> 2 else 0


@micropython.viper
def lane(c, conn: int, buf, at: int, end: int) -> int:
    # Handles packets of buf[at:end] of a connected client; -> the offset of the first
    # one that it leaves.
    q = c[0]
    b = ptr8(buf)
    session = ptr16(c[1])[conn]
    stats = ptr32(c[2])
    stats[_BYTES_IN] -= at
    while at + 1 < end:
        first = b[at]
        if first == 0x30:
            n = int(forward(c, buf, at, end))
            if n == 0:
                break
            at += n
            stats[_PUBLISH_IN] += 1
        elif first == 0x32 or first == 0x34:
            n = int(accept(c, conn, session, buf, at, end))
            if n == 0:
                break
            at += n
            stats[_PUBLISH_IN] += 1
            stats[_PACKETS_OUT] += 1
        elif first == 0xC0:
            if b[at + 1]:
                break
            put_ping(q, conn)
            stats[_PACKETS_OUT] += 1
            at += 2
        else:
            if at + 4 > end or b[at + 1] != 2:
                break
            packet_id = (b[at + 2] << 8) | b[at + 3]
            if first == 0x40:
                entry = int(acked(q, session, packet_id, 1))
            elif first == 0x70:
                entry = int(acked(q, session, packet_id, 3))
            elif first == 0x50:
                entry = int(acked(q, session, packet_id, 2))
                # an unknown id gets its PUBREL too: else the client waits for ever
                put_ack(q, conn, 0x62, packet_id)
                stats[_PACKETS_OUT] += 1
            elif first == 0x62 and int(c[13]):
                entry = _NONE
                release(c, session, packet_id)
                put_ack(q, conn, 0x70, packet_id)
                stats[_PACKETS_OUT] += 1
            else:
                break
            if entry != _NONE:
                ptr32(c[8])[session] = ptr32(c[3])[0]
            at += 4
        stats[_PACKETS_IN] += 1
    stats[_BYTES_IN] += at
    return at


@micropython.viper
def accept(c, conn: int, session: int, buf, at: int, end: int) -> int:
    # A QoS 1 or 2 PUBLISH: stored, queued for every receiver, acknowledged; -> its
    # length. 0, and nothing done: as for forward(), or a receiver takes QoS 0.
    q = c[0]
    p = ptr32(c[4])
    n = int(next_packet(buf, at, end, c[4]))
    if n <= 0 or p[_TOPIC_LEN] == 0 or p[_PACKET_ID] == 0:
        return 0
    packet_id = p[_PACKET_ID]
    topic = p[_TOPIC]
    if ptr8(buf)[topic] == 36:
        return 0
    slot = int(c[14](buf, topic, p[_TOPIC_LEN]))
    if slot < 0:
        return 0
    qos = p[_FLAGS] >> 1
    counts = ptr16(c[6])
    id_at = session * int(c[7]) + counts[session]
    if qos == 2:
        if int(find_id(c[5], id_at - counts[session], counts[session], packet_id)) >= 0:
            put_ack(q, conn, 0x50, packet_id)
            return n
        if counts[session] == int(c[7]) or int(c[13]) == 0:
            return 0
    pool = c[12][0]
    first = ptr16(c[10])[slot]
    last = ptr16(c[11])[slot]
    if first < last:
        if int(have_room(q, pool, first, last)) == 0:
            return 0
        size = p[_END] - p[_PAYLOAD]
        msg = int(store(q, buf, topic, p[_TOPIC_LEN], p[_PAYLOAD], size, qos << 1))
        if msg == _NONE:
            return 0
        while first < last:
            granted = ptr16(pool)[first] & 3
            append(q, ptr16(pool)[first] >> 2, msg, (granted if granted < qos else qos) << 1)
            first += 1
        unref(q, msg)
    if qos == 1:
        put_ack(q, conn, 0x40, packet_id)
        return n
    ptr16(c[5])[id_at] = packet_id
    counts[session] += 1
    high = ptr32(c[18])
    if counts[session] > high[0]:
        high[0] = counts[session]
    put_ack(q, conn, 0x50, packet_id)
    return n


@micropython.viper
def release(c, session: int, packet_id: int):
    # PUBREL: the id leaves the QoS 2 receive list; the last one takes its place.
    ids = ptr16(c[5])
    counts = ptr16(c[6])
    first = session * int(c[7])
    at = int(find_id(c[5], first, counts[session], packet_id))
    if at >= 0:
        counts[session] -= 1
        ids[at] = ids[first + counts[session]]


@micropython.viper
def put_ping(q, conn: int):
    # PINGRESP to the connection that is being read, whose room is certain.
    tx_end = ptr32(q[23])
    d = ptr8(int(ptr8(q[25])) + tx_end[conn])
    d[0] = 0xD0
    d[1] = 0
    tx_end[conn] += 2
    out = ptr8(q[22])
    if out[conn] == 0:
        out[conn] = 1
        counts = ptr32(q[27])
        ptr16(q[26])[counts[0]] = conn
        counts[0] += 1


@micropython.viper
def forward(c, buf, start: int, end: int) -> int:
    # A QoS 0 PUBLISH at buf[start] to all its receivers, byte for byte; -> its length.
    # 0, and nothing done: it is cut or malformed, its route is not known, its topic
    # begins with $, or one of the receivers has no room.
    b = ptr8(buf)
    length = b[start + 1]
    at = start + 2
    if length > 127:
        if at >= end:
            return 0
        length = (length & 127) | (b[at] << 7)
        at += 1
        if length > 16383 or length < 128:
            return 0
    n = at - start + length
    if start + n > end or length < 3 or n > ptr32(c[4])[_PACKET_MAX]:
        return 0
    size = (b[at] << 8) | b[at + 1]
    if size == 0 or size + 2 > length or b[at + 2] == 36:
        return 0
    slot = int(c[14](buf, at + 2, size))
    if slot < 0:
        return 0
    return int(spread(c[12], ptr16(c[10])[slot], ptr16(c[11])[slot], buf, start, n))


@micropython.viper
def spread(p, first: int, last: int, buf, start: int, n: int) -> int:
    # Copies a packet to the receivers first..last, if all have room; -> n, or 0.
    # p: Connections.columns.
    entries = ptr16(p[0])
    conn_of = ptr16(p[1])
    tx_end = ptr32(p[3])
    tx_limit = ptr32(p[4])
    i = first
    while i < last:
        conn = conn_of[entries[i] >> 2]
        if conn != _NONE and tx_end[conn] + n > tx_limit[conn]:
            return 0
        i += 1
    out = ptr8(p[2])
    tx = int(ptr8(p[5]))
    counts = ptr32(p[7])
    mask = 3 - int(WORDS)
    i = first
    while i < last:
        conn = conn_of[entries[i] >> 2]
        i += 1
        if conn == _NONE:
            continue
        d = tx + tx_end[conn]
        tx_end[conn] += n
        if out[conn] == 0:
            out[conn] = 1
            ptr16(p[6])[counts[0]] = conn
            counts[0] += 1
        counts[1] += 1
        s = int(ptr8(buf)) + start
        to = s + n
        if ((d | s) & mask) == 0:
            words = to - 3
            while s < words:
                ptr32(d)[0] = ptr32(s)[0]
                d += 4
                s += 4
        while s < to:
            ptr8(d)[0] = ptr8(s)[0]
            d += 1
            s += 1
    return n
