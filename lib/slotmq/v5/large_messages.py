# large_messages.py - sends a PUBLISH that is larger than the outgoing buffer [5.0, 3.3], where no
# message slot is free (handle), or where not even topic and properties fit into it (send). Then
# write() puts what is between topic and payload: for version 5, and of messages with
# properties. Such a message has no alias. Its client is not read meanwhile, so its subscriptions,
# and their identifiers, stay as they are. Loaded on demand. Owns nothing. Does not allocate.
from slotmq.constants import EXTRA, MIDDLE, NONE, OWN_SEVERAL, PUBLISH_OUT
from slotmq.delivery.encode import length_bytes, put_header, put_length, put_u16
from slotmq.delivery.outgoing import fill, pass_rest, set_chunked
from slotmq.fast import copy
from slotmq.v5.send import identifiers, put_expiry


def handle(broker, conn, end, start, n):
    """Of QoS 0: the head is in tx; write the rest to the socket from the packet that brought it;
    -> as emit()."""
    conns = broker.conns
    base = conn * conns.tx_bytes
    lwip = broker.loop.lwip
    if lwip and lwip.leaves(conn, end - base + n):
        conns.tx_end[conn] = base
        return 0
    broker.flush(conn)
    if conns.tx_end[conn] == end:  # nothing of it was taken
        conns.tx_end[conn] = base
        return 0
    broker.stats[PUBLISH_OUT] += 1
    pass_rest(broker, conn, broker.five.source.buf, start, n)
    return 1


def send(broker, conn, first, packet_id, ident):
    """emit() for such a message."""
    conns = broker.conns
    source = broker.five.source
    if source.msg == NONE:  # there is no slot for it
        broker.messages.refused += 1
        return -1
    if source.tbuf is not source.text:  # its buffer is overwritten later
        copy(source.text, 0, source.tbuf, source.topic, source.topic_len)
        source.tbuf = source.text
        source.topic = 0
    remaining = 2 + source.topic_len + source.size + (2 if packet_id else 0)
    if conns.level[conn] == 5:
        own = identifiers(broker, conns.session[conn], ident, None, 0)
        if own + MIDDLE > conns.tx_bytes:  # put_middle() puts it as a whole
            return -1
        section = source.props + own + (5 if source.left > 0 else 0)
        broker.five.chunked_ident[conn] = OWN_SEVERAL if ident < 0 and source.own else ident
        remaining += section - source.props + length_bytes(section)
    else:
        remaining -= source.props
    at = conns.reserve(conn, 1 + length_bytes(remaining))
    if at < 0:
        return 0  # the connection is ending
    put_header(conns.tx, at, first, remaining)
    broker.messages.refs[source.msg] += 1
    if not packet_id and (conns.level[conn] == 5 or broker.messages.flags[source.msg] & EXTRA):
        packet_id = NONE  # there is something to put, but no packet id
    set_chunked(conns, conn, source.msg, 0, packet_id)
    fill(broker, conn)
    broker.stats[PUBLISH_OUT] += 1
    return 1


def write(broker, conn, msg, at, packet_id):
    """Put what is between topic and payload of a large message; -> the offset past it.

    If there is no space for it yet, chunked_id does not become 0."""
    conns = broker.conns
    five = broker.five
    tx = conns.tx
    session = conns.session[conn]
    ident = five.chunked_ident[conn]
    if ident < 0:
        if five.source.msg != msg:
            five.source.from_message(broker, msg)
        five.source.own = ident == OWN_SEVERAL
    size = identifiers(broker, session, ident, None, 0) if conns.level[conn] == 5 else 0
    if at + size + MIDDLE > (conn + 1) * conns.tx_bytes:
        return at
    extra = broker.messages.flags[msg] & EXTRA
    props = five.props[msg] if extra else 0
    if packet_id != NONE:
        at = put_u16(tx, at, packet_id)
    conns.chunked_id[conn] = 0
    if conns.level[conn] != 5:
        conns.chunked_off[conn] += props
        return at
    left = max(1, five.remaining(broker, msg)) if extra and five.expires[msg] else 0
    at = put_length(tx, at, props + size + (5 if left else 0))
    if left:
        at = put_expiry(tx, at, left, five.far[msg])
    return at + identifiers(broker, session, ident, tx, at)
