# send.py - sends PUBLISH to a client of MQTT 5.0, or a message with properties to any client
# [5.0, 3.3].
#
# emit() puts the Source (v5/source.py) for one receiver into tx, with this receiver's properties:
# remaining expiry, topic alias, subscription identifiers. The middle part of the file is for
# messages larger than the outgoing buffer. Owns nothing. Does not allocate.
from slotmq.delivery.encode import length_bytes, put_header, put_length, put_u16
from slotmq.delivery.outgoing import fill, may_begin, pass_rest, set_chunked, space
from slotmq.fast import copy, topic_matches
from slotmq.platform.runtime import const
from slotmq.v5.source import store

_NONE = const(0xFFFF)
_EXTRA = const(8)
# How a message larger than the outgoing buffer is sent: from its slot, or from the packet
_BY_SLOT = const(1)
_STRAIGHT = const(2)
_DUP = const(8)  # in the flags of PUBLISH
_NOT_OWN = const(4 | 16)  # No Local of a client, of a bridge
_OWN_SEVERAL = const(-2)
_NEAR = const(8)
_MIDDLE = const(11)  # packet id, length of the properties, expiry
_PUBLISH_OUT = const(3)
_DROPPED = const(4)


def send(broker, conn, msg, first, packet_id):
    """outgoing.send_message() for version 5 and for messages with properties; -1: never."""
    five = broker.five
    five.source.from_message(broker, msg)
    done = emit(broker, conn, first, packet_id, five.next_ident)
    five.next_ident = 0
    if done < 0:
        broker.stats[_DROPPED] += 1
    return done


def emit(broker, conn, first, packet_id, ident, may_alias=True):
    """Send the Source to one connection: 1: it is in tx, 0: not now, -1: never. ident: its
    subscription identifier, 0: none, SEVERAL: those of all that match."""
    conns = broker.conns
    source = broker.five.source
    aliases = broker.five.aliases
    is_5 = conns.level[conn] == 5
    topic_len = source.topic_len
    skip = source.props
    alias = own = length = chunked = 0
    if source.left == 0:
        if not first & _DUP:
            return -1
        source.left = 1  # it was first sent before it expired [3.3.2-5]
    if is_5:
        if may_alias and not first & 4:  # QoS 2: some clients lose the topic until PUBREL
            alias = aliases.outgoing(conn, source.tbuf, source.topic, topic_len)
        if alias and aliases.found[0]:
            topic_len = 0
        skip = 0
        own = identifiers(broker, conns.session[conn], ident, None, 0)
        own += (5 if source.left > 0 else 0) + (3 if alias else 0)
        length = length_bytes(own + source.props)
    body = source.size - skip
    remaining = 2 + topic_len + (2 if packet_id else 0) + length + own + body
    n = 1 + length_bytes(remaining) + remaining
    if broker.outgoing:
        first = broker.outgoing.leaves(conn, first, n)
    if 0 < broker.five.packet_max[conn] < n:
        if alias and topic_len:  # without a new alias it may be small enough
            return emit(broker, conn, first, packet_id, ident, False)
        return -1  # [3.1.2-24]
    at = space(broker, conn, n)
    if at < 0:
        if not conns.tx_limit[conn] or not may_begin(broker, conn, source.msg, first, n):
            return 0
        chunked = _STRAIGHT if source.msg == _NONE and store(broker, 0) == _NONE else _BY_SLOT
        if chunked == _STRAIGHT and alias:
            return emit(broker, conn, first, packet_id, ident, False)  # the send may be undone
        at = conns.reserve(conn, n - body)
        if at < 0:
            return _begin_large(broker, conn, first, packet_id, ident)
    tx = conns.tx
    at = put_u16(tx, put_header(tx, at, first, remaining), topic_len)
    copy(tx, at, source.tbuf, source.topic, topic_len)
    at += topic_len
    if packet_id:
        at = put_u16(tx, at, packet_id)
    if is_5:
        at = _put_own(broker, conn, tx, at, own + source.props, alias, ident)
    if chunked == _STRAIGHT:
        return _send_straight(broker, conn, at, source.at + skip, body)
    if chunked:
        _begin_chunked(broker, conn, 2 + source.topic_len + skip)
    else:
        source.put(broker, tx, at, skip, body)
    broker.stats[_PUBLISH_OUT] += 1
    return 1


def _begin_chunked(broker, conn, off):
    msg = broker.five.source.msg
    broker.messages.refs[msg] += 1
    set_chunked(broker.conns, conn, msg, off, 0)
    fill(broker, conn)


def _send_straight(broker, conn, end, start, n):
    # QoS 0, larger than the buffer, and no message slot is free: the head is in tx; write the rest
    # to the socket from the packet that brought it.
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
    broker.stats[_PUBLISH_OUT] += 1
    pass_rest(broker, conn, broker.five.source.buf, start, n)
    return 1


def _begin_large(broker, conn, first, packet_id, ident):
    # The topic does not fit into the outgoing buffer: send it in chunks too. put_middle() puts
    # what is between topic and payload: for version 5, and of messages with properties. Such a
    # message has no alias. Its client is not read meanwhile, so its subscriptions, and their
    # identifiers, stay as they are.
    conns = broker.conns
    source = broker.five.source
    if source.msg == _NONE:  # there is no slot for it
        broker.messages.refused += 1
        return -1
    if source.tbuf is not source.text:  # its buffer is overwritten later
        copy(source.text, 0, source.tbuf, source.topic, source.topic_len)
        source.tbuf = source.text
        source.topic = 0
    remaining = 2 + source.topic_len + source.size + (2 if packet_id else 0)
    if conns.level[conn] == 5:
        own = identifiers(broker, conns.session[conn], ident, None, 0)
        if own + _MIDDLE > conns.tx_bytes:  # put_middle() puts it as a whole
            return -1
        section = source.props + own + (5 if source.left > 0 else 0)
        broker.five.chunked_ident[conn] = _OWN_SEVERAL if ident < 0 and source.own else ident
        remaining += section - source.props + length_bytes(section)
    else:
        remaining -= source.props
    at = conns.reserve(conn, 1 + length_bytes(remaining))
    if at < 0:
        return 0  # the connection is ending
    put_header(conns.tx, at, first, remaining)
    broker.messages.refs[source.msg] += 1
    if not packet_id and (conns.level[conn] == 5 or broker.messages.flags[source.msg] & _EXTRA):
        packet_id = _NONE  # there is something to put, but no packet id
    set_chunked(conns, conn, source.msg, 0, packet_id)
    fill(broker, conn)
    broker.stats[_PUBLISH_OUT] += 1
    return 1


def put_middle(broker, conn, msg, at, packet_id):
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
        five.source.own = ident == _OWN_SEVERAL
    size = identifiers(broker, session, ident, None, 0) if conns.level[conn] == 5 else 0
    if at + size + _MIDDLE > (conn + 1) * conns.tx_bytes:
        return at
    extra = broker.messages.flags[msg] & _EXTRA
    props = five.props[msg] if extra else 0
    if packet_id != _NONE:
        at = put_u16(tx, at, packet_id)
    conns.chunked_id[conn] = 0
    if conns.level[conn] != 5:
        conns.chunked_off[conn] += props
        return at
    left = max(1, five.remaining(broker, msg)) if extra and five.expires[msg] else 0
    at = put_length(tx, at, props + size + (5 if left else 0))
    if left:
        at = _put_expiry(tx, at, left, five.far[msg])
    return at + identifiers(broker, session, ident, tx, at)


def _put_expiry(tx, at, left, far):
    tx[at] = 0x02
    far = max(0, far - _NEAR) << 9  # of 2 ** 25 seconds, in units of 2 ** 16
    return put_u16(tx, put_u16(tx, at + 1, (left >> 16) + far), left & 0xFFFF)


def _put_own(broker, conn, tx, at, section, alias, ident):
    # Put the property section up to the properties that are forwarded.
    source = broker.five.source
    aliases = broker.five.aliases
    at = put_length(tx, at, section)
    if source.left > 0:
        at = _put_expiry(tx, at, source.left, source.far)
    if alias:
        tx[at] = 0x23
        at = put_u16(tx, at + 1, alias)
        if not aliases.found[0]:
            aliases.give(conn, alias, source.tbuf, source.topic, source.topic_len)
    return at + identifiers(broker, broker.conns.session[conn], ident, tx, at)


def identifiers(broker, session, ident, tx, at):
    """Put the identifiers of a message; -> their bytes. tx None: only count them."""
    five = broker.five
    if ident >= 0:
        return _put_identifier(ident, tx, at) if ident else 0
    start = at
    sub = broker.sessions.first_sub[session]
    while sub != _NONE:
        if five.identifier[sub] and _matches(broker, sub):
            at += _put_identifier(five.identifier[sub], tx, at)
        sub = broker.subscriptions.next_in_session[sub]
    return at - start


def _put_identifier(number, tx, at):
    if tx is not None:
        tx[at] = 0x0B
        put_length(tx, at + 1, number)
    return 1 + length_bytes(number)


def _matches(broker, sub):
    # Does this subscription match the Source? With No Local not if the client has published it.
    source = broker.five.source
    subs = broker.subscriptions
    if subs.share[sub] != _NONE or source.own and broker.five.options[sub] & _NOT_OWN:
        return False
    end = len(source.scratch)
    text = subs.filter_text(subs.node[sub], source.scratch, end)
    n = end - text
    return topic_matches(source.scratch, text, n, source.tbuf, source.topic, source.topic_len)
