# path_cpython.py - the contract of fast/path_viper.py on CPython.
from slotmq.constants import (ANNOUNCED, BYTES_IN, DIRTY_CONNS, END, FAST_MAX, FAST_READ, FLAGS,
    NONE, NOW, PACKETS_IN, PACKETS_OUT, PACKET_ID, PAYLOAD, PUBLISHES, PUBLISH_IN, TOPIC,
    TOPIC_LEN)
from slotmq.fast.bytes_cpython import find_id, next_packet
from slotmq.fast.deliveries_cpython import acked, fan, have_space
from slotmq.fast.messages_cpython import put_ack, store, unref
from slotmq.fast.routes_cpython import place

_STATES = {0x40: 1, 0x50: 2, 0x70: 3}  # the states that PUBACK, PUBREC and PUBCOMP end


def may_read(broker, conn):
    """How many bytes may be read from a client of the fast path; 0: ask dispatch.readable."""
    conns = broker.conns
    if conns.state[conn] != 2 or conns.buffered[conn]:
        return 0
    conns.last_activity[conn] = broker.now
    most = conns.reassembly[FAST_READ]
    space = conns.tx_limit[conn] - conns.tx_end[conn]
    if space > most:
        return most
    return space if space > 0 and space > most >> 2 else 0


def fast_path(broker, conn, buf, at, end):
    """Handle packets of buf[at:end]; -> the offset of the first one that was not handled."""
    if buf[at] > 0x7F and buf[at] != 0xC0:
        return at  # SUBSCRIBE, UNSUBSCRIBE, DISCONNECT: before anything is looked up
    stats = broker.stats
    tables = broker.tables
    session = broker.conns.session[conn]
    routes = broker.subscriptions.routes
    slot_of = routes.senders.of(conn) if routes.senders else routes.slot_of
    five = broker.conns.level[conn] == 5
    stats[BYTES_IN] -= at
    if type(buf) is not bytes:
        buf = bytes(memoryview(buf)[:end])  # slices of bytes can be keys of a dict
    while at + 1 < end:
        first = buf[at]
        if first == 0x30:
            n = forward(broker, slot_of, buf, at, end, five)
            if not n:
                break
            at += n
            stats[PUBLISH_IN] += 1
        elif first in (0x32, 0x34):
            n = accept(broker, conn, slot_of, buf, at, end, five)
            if not n:
                break
            at += n
            stats[PUBLISH_IN] += 1
            stats[PACKETS_OUT] += 1
        elif first == 0xC0:
            if buf[at + 1]:
                break
            _put_ping(broker.conns, conn)
            stats[PACKETS_OUT] += 1
            at += 2
        else:
            if at + 4 > end or buf[at + 1] != 2:
                break
            packet_id = buf[at + 2] << 8 | buf[at + 3]
            if not _acknowledge(broker, tables, conn, session, first, packet_id):
                break
            at += 4
        stats[PACKETS_IN] += 1
    stats[BYTES_IN] += at
    return at


def _acknowledge(broker, tables, conn, session, first, packet_id):
    if first == 0x62:
        if broker.sessions.id_msg is not None or not _release(broker.sessions, session, packet_id):
            return False
        put_ack(tables, conn, 0x70, packet_id)
        broker.stats[PACKETS_OUT] += 1
        return True
    state = _STATES.get(first)
    if not state or acked(tables, session, packet_id, state) == NONE:
        return False  # an id that is unknown, acknowledged again, or waits for another packet
    if first == 0x50:
        put_ack(tables, conn, 0x62, packet_id)
        broker.stats[PACKETS_OUT] += 1
    broker.sessions.progress[session] = broker.clock[NOW]
    return True


def accept(broker, conn, slot_of, buf, at, end, five):
    """Store, queue and acknowledge a QoS 1 or 2 PUBLISH; -> its length, or 0. slot_of: the routes
    on which the client may publish; five: its version is 5."""
    pkt = broker.pkt
    tables = broker.tables
    n = next_packet(buf, at, end, pkt)
    if n <= 0 or n > pkt[FAST_MAX]:
        return 0
    packet_id = pkt[PACKET_ID]
    topic = pkt[TOPIC]
    size = pkt[TOPIC_LEN]
    if not size or not packet_id or buf[topic] == 36:
        return 0
    routes = broker.subscriptions.routes
    slot = slot_of.get(buf[topic : topic + size], -1)
    if slot < 0:
        return 0
    first = routes.first[slot]
    last = routes.end[slot]
    if five:
        at = pkt[PAYLOAD]
        if at == pkt[END] or buf[at] or first == last:
            return 0  # it is malformed, has properties, or wants a reason code
        pkt[PAYLOAD] = at + 1
    qos = pkt[FLAGS] >> 1
    sessions = broker.sessions
    session = broker.conns.session[conn]
    if qos == 2:
        if sessions.find_received(session, packet_id) >= 0:
            return 0
        count = sessions.id_count[session]
        if count >= sessions.ids_high[ANNOUNCED] or sessions.id_msg is not None:
            return 0
    pool = broker.subscriptions.pool
    if first < last:
        n_payload = pkt[END] - pkt[PAYLOAD]
        if not have_space(tables, pool, first, last, size + 2 + n_payload):
            return 0
        msg = store(tables, buf, topic, size, pkt[PAYLOAD], n_payload, qos << 1)
        if msg == NONE:
            return 0
        fan(tables, pool, first, last, msg, qos)
        unref(tables, msg)
    if qos == 2:
        sessions.add_received(session, packet_id)
    put_ack(tables, conn, 0x30 + (qos << 4), packet_id)
    return n


def _release(sessions, session, packet_id):
    first = session * sessions.received
    at = find_id(sessions.ids, first, sessions.id_count[session], packet_id)
    if at >= 0:
        sessions.remove_received(session, at)
    return at >= 0


def _put_ping(conns, conn):
    at = conns.tx_end[conn]
    conns.tx[at : at + 2] = b"\xd0\0"
    conns.tx_end[conn] = at + 2
    if not conns.out[conn]:
        conns.mark_dirty(conn)


def forward(broker, slot_of, buf, start, end, five):
    """Send a QoS 0 PUBLISH to all its receivers; -> its length, or 0: not by the fast path."""
    length = buf[start + 1]
    at = start + 2
    if length > 127:
        if at >= end:
            return 0
        length = length & 127 | buf[at] << 7
        at += 1
        if length > 16383 or length < 128:
            return 0
    n = at - start + length
    stop = start + n
    if stop > end or length < 3 or n > broker.pkt[FAST_MAX]:
        return 0
    size = buf[at] << 8 | buf[at + 1]
    at += 2
    if size + 2 > length or buf[at] == 36:
        return 0
    subs = broker.subscriptions
    routes = subs.routes
    slot = slot_of.get(buf[at : at + size], -1)
    if slot < 0:
        return 0
    entries, conn_of, out, tx_end, tx_limit, tx, dirty, counts = broker.conns.columns
    first = routes.first[slot]
    mid = routes.mid[slot]
    last = routes.end[slot]
    if five and (at + size == stop or buf[at + size]):
        return 0
    if broker.queue_qos0 and _waits(broker.sessions, entries[first:last]):
        return 0
    if mid != (first if five else last):
        return _translate(broker, buf[start:stop], at - start, size, slot, five)
    for i in range(first, last):
        conn = conn_of[entries[i] >> 2]
        if conn != NONE and tx_end[conn] + n > tx_limit[conn]:
            return 0
    packet = buf[start:stop]
    for i in range(first, last):
        conn = conn_of[entries[i] >> 2]
        if conn != NONE:
            to = tx_end[conn]
            tx_end[conn] = end = to + n
            tx[to:end] = packet
            if not out[conn]:
                out[conn] = 1
                dirty[counts[DIRTY_CONNS]] = conn
                counts[DIRTY_CONNS] += 1
            counts[PUBLISHES] += 1
    return n


def _waits(sessions, entries):
    # Must a QoS 0 message be queued for one of these receivers?
    for entry in entries:
        session = entry >> 2
        if sessions.conn[session] == NONE or sessions.cursor[session] != NONE:
            return True
    return False


def _translate(broker, packet, topic, size, slot, five):
    """forward() to receivers of both versions, or of the other one only: their packet has the
    length of the properties, 0, more or less."""
    routes = broker.subscriptions.routes
    columns = broker.conns.columns
    entries, conn_of, _, tx_end, tx_limit, _, _, _ = columns
    first, mid, last = routes.first[slot], routes.mid[slot], routes.end[slot]
    body = packet[topic - 2 : topic + size]
    body += packet[topic + size + 1 :] if five else b"\0" + packet[topic + size :]
    rest = len(body)
    if rest >> 14 or mid > last:  # or a receiver of version 5 needs other code
        return 0
    length = bytes((rest & 127 | 128, rest >> 7)) if rest > 127 else bytes((rest,))
    other = b"\x30" + length + body
    of_3, of_5 = (other, packet) if five else (packet, other)
    for i in range(first, last):
        conn = conn_of[entries[i] >> 2]
        n = len(of_3 if i < mid else of_5)
        if conn != NONE and tx_end[conn] + n > tx_limit[conn]:
            return 0
    place(columns, first, mid, of_3, 0, len(of_3))
    place(columns, mid, last, of_5, 0, len(of_5))
    return len(packet)
