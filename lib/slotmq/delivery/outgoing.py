# outgoing.py - puts packets into a connection's outgoing buffer.
#
# A full buffer is flushed within the turn: space() returns -1 only after the socket has refused to
# take more. A message that is larger than the buffer is sent in chunks, which are copied from its
# slot whenever there is space. Until its end tx_limit is 0, so that no other packet gets in
# between. Owns nothing; the columns are in tables/connections.py. Does not allocate.
from slotmq.constants import BLOCKED, EXTRA, NONE, PACKETS_OUT, POLICY_DISCONNECT, PUBLISH_OUT
from slotmq.delivery.encode import length_bytes, put_header, put_message
from slotmq.fast import copy, store, unref
from slotmq.fast import put_ack as put_four

_CHUNK_LEAST = 20  # bytes of space at least for a chunk of a message


def space(broker, conn, n):
    """Reserve n bytes of tx; -> their offset, or -1: the socket takes nothing now."""
    conns = broker.conns
    at = conns.reserve(conn, n)
    if at < 0 and conns.out[conn] != BLOCKED:
        broker.flush(conn)
        at = conns.reserve(conn, n)
    return at


def put_ack(broker, conn, first, value):
    """Put a four-byte packet for the connection that is being read.

    Its space is certain: readable() of protocol/dispatch.py lets no more be read than there is
    space for answers, and receive() lowers tx_limit by that for all other packets."""
    put_four(broker.tables, conn, first, value)
    broker.stats[PACKETS_OUT] += 1


def send_message(broker, conn, msg, first, packet_id):
    """PUBLISH a stored message [3.3]. False: not now, the socket will be writable; -1: never."""
    messages = broker.messages
    if not first & 6:
        packet_id = 0
    if broker.conns.level[conn] > 4 or messages.flags[msg] & EXTRA:
        return broker.five.send(broker, conn, msg, first, packet_id)
    remaining = messages.topic_len[msg] + messages.payload_len[msg] + (4 if packet_id else 2)
    n = remaining + 1 + length_bytes(remaining)
    at = space(broker, conn, n)
    if at >= 0:
        put_message(broker.conns.tx, at, messages, msg, first, remaining, packet_id)
    elif not _begin_chunked(broker, conn, msg, first, remaining, n, packet_id):
        return False
    broker.stats[PUBLISH_OUT] += 1
    return True


def send_packet(broker, conn, buf, start, n):
    """Put a QoS 0 packet for which place() had no space; False: the socket takes nothing now."""
    conns = broker.conns
    at = space(broker, conn, n)
    if at < 0:
        if n <= conns.tx_bytes or not conns.is_empty(conn):
            return False
        return _pass_through(broker, conn, buf, start, n)
    copy(conns.tx, at, buf, start, n)
    conns.tx[at] = 0x30
    broker.stats[PUBLISH_OUT] += 1
    return True


def _pass_through(broker, conn, buf, start, n):
    # The packet is larger than the buffer, which is empty. Send one buffer of it, then write the
    # rest to the socket. What the socket does not take waits in the buffer or, as bytes without a
    # topic, in a message slot. If it is known that a slot will be needed, it is taken first.
    conns = broker.conns
    k = conns.tx_bytes
    lwip = broker.loop.lwip
    msg = NONE
    if lwip and lwip.leaves(conn, n):
        msg = store(broker.tables, buf, start + k, 0, start + k, n - k, 0)
        if msg == NONE:
            return False
    at = conns.reserve(conn, k)
    if at >= 0:
        copy(conns.tx, at, buf, start, k)
        conns.tx[at] = 0x30
        broker.flush(conn)
        if conns.tx_end[conn] != at + k:
            broker.stats[PUBLISH_OUT] += 1
            if msg == NONE:
                pass_rest(broker, conn, buf, start + k, n - k)
            else:
                set_chunked(conns, conn, msg, 2, 0)
                fill(broker, conn)
            return True
        conns.tx_end[conn] = at
    if msg != NONE:
        unref(broker.tables, msg)
    return False


def pass_rest(broker, conn, buf, start, n):
    """Send the rest of a QoS 0 packet whose beginning was sent, or is in tx."""
    conns = broker.conns
    if conns.out[conn] != BLOCKED:
        k = broker.write(conn, buf, start, n)
        start += k
        n -= k
    at = conns.reserve(conn, n) if n else 0
    if at >= 0:
        copy(conns.tx, at, buf, start, n)
        return
    msg = store(broker.tables, buf, start, 0, start, n, 0)
    if msg == NONE:
        broker.messages.refused += 1
        broker.end(conn, POLICY_DISCONNECT)
    else:
        set_chunked(conns, conn, msg, 2, 0)
        fill(broker, conn)


def _begin_chunked(broker, conn, msg, first, remaining, n, packet_id):
    conns = broker.conns
    if not may_begin(broker, conn, msg, first, n):
        return False
    head = 1 + length_bytes(remaining)
    at = conns.reserve(conn, head)
    if at < 0:
        return False  # the connection is ending: tx_limit is 0
    put_header(conns.tx, at, first, remaining)
    broker.messages.refs[msg] += 1
    set_chunked(conns, conn, msg, 0, packet_id)
    fill(broker, conn)
    return True


def may_begin(broker, conn, msg, first, n):
    """May a message of n bytes, for which there is no space, be sent in chunks now? While the
    journal allows no flush none begins: nothing would continue it."""
    conns = broker.conns
    if broker.journal and broker.no_commit:
        return False
    if n > conns.tx_bytes and conns.is_empty(conn):
        return True
    # One of QoS 0 that has waited begins in any case: a shorter one would overtake it.
    entry = broker.sessions.cursor[conns.session[conn]]
    waited = entry != NONE and broker.deliveries.msg[entry] == msg != NONE
    return waited and not first & 6


def set_chunked(conns, conn, msg, off, packet_id):
    """Begin a chunked send of this message, from its byte `off` on."""
    conns.chunked_msg[conn] = msg
    conns.chunked_off[conn] = off
    conns.chunked_id[conn] = packet_id
    conns.tx_limit[conn] = 0


def fill(broker, conn):
    """Continue a chunked send. True if none is under way any more."""
    conns = broker.conns
    while conns.chunked_msg[conn] != NONE:
        limit = (conn + 1) * conns.tx_bytes
        end = conns.tx_end[conn]
        if limit - end < _CHUNK_LEAST or not _copy_chunk(broker, conn, limit):
            if conns.out[conn] == BLOCKED:
                return False
            broker.flush(conn)
            if conns.tx_end[conn] == end:
                return False
    return True


def _copy_chunk(broker, conn, limit):
    # Copy the next chunk: of the topic, the packet id, or of the payload. False: there is no space
    # yet for what version 5 puts between topic and payload.
    conns = broker.conns
    messages = broker.messages
    msg = conns.chunked_msg[conn]
    off = conns.chunked_off[conn]
    at = conns.tx_end[conn]
    packet_id = conns.chunked_id[conn]
    topic_end = messages.topic_len[msg] + 2
    end = topic_end + messages.payload_len[msg]
    if off == topic_end and packet_id:
        if conns.level[conn] == 5 or messages.flags[msg] & EXTRA:
            at = broker.five.put_middle(broker, conn, msg, at, packet_id)
            if conns.chunked_id[conn]:
                return False
            off = conns.chunked_off[conn]
        else:
            conns.tx[at] = packet_id >> 8
            conns.tx[at + 1] = packet_id & 255
            conns.chunked_id[conn] = 0
            at += 2
    else:
        n = min(limit - at, (topic_end if off < topic_end else end) - off)
        messages.arena.move(messages.first[msg], off, conns.tx, at, n, 1)
        off += n
        at += n
    conns.chunked_off[conn] = off
    conns.tx_end[conn] = at
    if conns.out[conn] == 0:
        conns.mark_dirty(conn)
    if off == end and not conns.chunked_id[conn]:
        end_chunked(broker, conn)
    return True


def end_chunked(broker, conn):
    """The whole message is in tx, or its connection ends: release its reference."""
    conns = broker.conns
    msg = conns.chunked_msg[conn]
    if msg != NONE:
        conns.chunked_msg[conn] = NONE
        conns.tx_limit[conn] = (conn + 1) * conns.tx_bytes
        unref(broker.tables, msg)
