# send.py - sends PUBLISH to a client of MQTT 5.0, or a message with properties to any client
# [5.0, 3.3].
#
# emit() puts the Source (v5/source.py) for one receiver into tx, with this receiver's properties:
# remaining expiry, topic alias, subscription identifiers. The middle part of the file is for
# messages larger than the outgoing buffer; what these seldom need is in v5/large_messages.py. Owns
# nothing. Does not allocate.
from slotmq.constants import DROPPED, DUP, NEAR, NONE, NOT_OWN, PUBLISH_OUT
from slotmq.delivery.encode import length_bytes, put_header, put_length, put_u16
from slotmq.delivery.outgoing import fill, may_begin, set_chunked, space
from slotmq.fast import copy, topic_matches
from slotmq.platform import heap, ondemand
from slotmq.v5.source import store

# How a message larger than the outgoing buffer is sent: from its slot, or from the packet
_BY_SLOT = 1
_STRAIGHT = 2


def send(broker, conn, msg, first, packet_id):
    """outgoing.send_message() for version 5 and for messages with properties; -1: never."""
    five = broker.five
    five.source.from_message(broker, msg)
    done = emit(broker, conn, first, packet_id, five.next_ident)
    five.next_ident = 0
    if done < 0:
        broker.stats[DROPPED] += 1
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
        if not first & DUP:
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
    if broker.bridges:
        first = broker.bridges.leaves(conn, first, n)
    if 0 < broker.five.packet_max[conn] < n:
        if alias and topic_len:  # without a new alias it may be small enough
            return emit(broker, conn, first, packet_id, ident, False)
        return -1  # [3.1.2-24]
    at = space(broker, conn, n)
    if at < 0:
        if not conns.tx_limit[conn] or not may_begin(broker, conn, source.msg, first, n):
            return 0
        chunked = _STRAIGHT if source.msg == NONE and store(broker, 0) == NONE else _BY_SLOT
        if chunked == _STRAIGHT and alias:
            return emit(broker, conn, first, packet_id, ident, False)  # the send may be undone
        large = chunked == _BY_SLOT or _large_messages(broker)
        at = conns.reserve(conn, n - body) if large else -1
        if at < 0:
            large = _large_messages(broker)
            return large.send(broker, conn, first, packet_id, ident) if large else 0
    tx = conns.tx
    at = put_u16(tx, put_header(tx, at, first, remaining), topic_len)
    copy(tx, at, source.tbuf, source.topic, topic_len)
    at += topic_len
    if packet_id:
        at = put_u16(tx, at, packet_id)
    if is_5:
        at = _put_own(broker, conn, tx, at, own + source.props, alias, ident)
    if chunked == _STRAIGHT:
        return large.handle(broker, conn, at, source.at + skip, body)
    if chunked:
        _begin_chunked(broker, conn, 2 + source.topic_len + skip)
    else:
        source.put(broker, tx, at, skip, body)
    broker.stats[PUBLISH_OUT] += 1
    return 1


def _begin_chunked(broker, conn, off):
    msg = broker.five.source.msg
    broker.messages.refs[msg] += 1
    set_chunked(broker.conns, conn, msg, off, 0)
    fill(broker, conn)


def put_middle(broker, conn, msg, at, packet_id):
    """Put what is between topic and payload of a large message; -> the offset past it.

    If there is no space for it yet, chunked_id does not become 0."""
    large = _large_messages(broker)
    return large.write(broker, conn, msg, at, packet_id) if large else at


def _large_messages(broker):
    # v5/large_messages.py, or None: there is no heap for it
    heap.lift()
    try:
        large = ondemand.take("v5.large_messages", broker.now)
    except MemoryError:
        large = None
    heap.drop()
    return large


def put_expiry(tx, at, left, far):
    """Put the property of a message that expires; -> the offset past it."""
    tx[at] = 0x02
    far = max(0, far - NEAR) << 9  # of 2 ** 25 seconds, in units of 2 ** 16
    return put_u16(tx, put_u16(tx, at + 1, (left >> 16) + far), left & 0xFFFF)


def _put_own(broker, conn, tx, at, section, alias, ident):
    # Put the property section up to the properties that are forwarded.
    source = broker.five.source
    aliases = broker.five.aliases
    at = put_length(tx, at, section)
    if source.left > 0:
        at = put_expiry(tx, at, source.left, source.far)
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
    while sub != NONE:
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
    if subs.share[sub] != NONE or source.own and broker.five.options[sub] & NOT_OWN:
        return False
    end = len(source.scratch)
    text = subs.filter_text(subs.node[sub], source.scratch, end)
    n = end - text
    return topic_matches(source.scratch, text, n, source.tbuf, source.topic, source.topic_len)
