# subscribe.py - SUBSCRIBE and UNSUBSCRIBE of a client of MQTT 5.0 [5.0, 3.8, 3.10]:
# options, identifiers, shared subscriptions, a reason code for each filter. The whole packet
# is checked before anything is changed. Owns nothing. Control plane: may allocate and free.
from slotmq.constants import (BODY, END, FILTER_INVALID, FLAGS, IDENTIFIER, MALFORMED_PACKET, NONE,
    NO_LOCAL, OK, PACKET_TOO_LARGE, POLICY_DISCONNECT, PROTOCOL_ERROR, QUOTA, SUBACK,
    SUBSCRIBE_LOG, SUBSCRIBE_TYPE, TYPE, UNAUTHORIZED, UNSUBACK, UNSUBSCRIBE_LOG)
from slotmq.delivery import retain
from slotmq.delivery.encode import length_bytes, put_header, put_u16
from slotmq.fast import filter_ok, utf8_ok
from slotmq.platform import ondemand
from slotmq.protocol import subscribe as version3
from slotmq.tables import insertion
from slotmq.v5.outgoing_acks import sent, space_for
from slotmq.v5.properties import scan

ondemand.loaded.setdefault("protocol.subscribe", 0)  # imported here: unload it as well

_IN_SUBSCRIBE = 16
_IN_UNSUBSCRIBE = 32
_OPTIONS = 12
# Reason codes [2.4]
_NOT_SUBSCRIBED = 0x11
_NO_SHARES = 0x9E
_SHARE = b"$share/"


def handle(broker, conn, pkt, buf):
    """SUBSCRIBE or UNSUBSCRIBE; a result."""
    if pkt[TYPE] == SUBSCRIBE_TYPE:
        return _answer(broker, conn, pkt, buf, SUBACK, _IN_SUBSCRIBE)
    return _answer(broker, conn, pkt, buf, UNSUBACK, _IN_UNSUBSCRIBE)


def _answer(broker, conn, pkt, buf, answer, where):
    if pkt[FLAGS] != 2:
        return MALFORMED_PACKET  # [3.8.1-1]
    body = pkt[BODY]
    values = broker.five.values
    at = scan(buf, body + 2, pkt[END], where, values)
    if at < 0:
        return -at
    options = 1 if answer == SUBACK else 0
    count = _check(buf, at, pkt[END], options)
    if count < 0:
        return -count
    if count == 0 or buf[body] == 0 == buf[body + 1]:
        return PROTOCOL_ERROR
    put = space_for(broker, conn, count + 4 + length_bytes(count + 3))
    if put < 0:  # too many filters for the outgoing buffer, or for the client's packet size
        most = broker.five.packet_max[conn]
        if 0 < most < count + 4 + length_bytes(count + 3):
            return PACKET_TOO_LARGE
        return POLICY_DISCONNECT
    identifier = values[IDENTIFIER] if values[0] >> IDENTIFIER & 1 else 0
    tx = broker.conns.tx
    put = put_header(tx, put, answer, count + 3)
    put = put_u16(tx, put, buf[body] << 8 | buf[body + 1])
    tx[put] = 0
    put += 1
    session = broker.conns.session[conn]
    while at < pkt[END]:
        n = buf[at] << 8 | buf[at + 1]
        at += 2 + n
        if options:
            tx[put] = _subscribe(broker, session, buf, at - n, n, buf[at], identifier)
            if tx[put] & 0x80:
                version3.denied(broker, conn, tx[put], buf, at - n, n)
        else:
            tx[put] = _unsubscribe(broker, session, buf, at - n, n)
        at += options
        put += 1
    sent(broker, conn, put)
    return OK


def _check(buf, at, end, options):
    # -> the number of filters, or -reason code [3.8.3, 3.10.3]. A malformed filter takes
    # precedence over a Protocol Error, wherever it is.
    count = 0
    wrong = False
    while at < end:
        n = buf[at] << 8 | buf[at + 1] if at + 2 <= end else 0
        at += 2
        if at + n + options > end or not utf8_ok(buf, at, n, 0) or not filter_ok(buf, at, n):
            return -MALFORMED_PACKET
        shared = _shared(buf, at, n)
        if shared < 0:
            return -MALFORMED_PACKET  # [4.8.2-1, -2]
        at += n
        if options:
            byte = buf[at]
            if byte & 0xC0:
                return -MALFORMED_PACKET  # [3.8.3-5]
            if byte & 3 == 3 or byte & 0x30 == 0x30 or shared and byte & NO_LOCAL:
                wrong = True
        at += options
        count += 1
    return -PROTOCOL_ERROR if wrong else count


def _shared(buf, off, n):
    # Length of $share/name/ before the filter; 0: it is not shared, -1: malformed.
    if n < 7 or bytes(buf[off : off + 7]) != _SHARE:
        return 0
    at = off + 7
    while at < off + n and buf[at] != 47:
        if buf[at] in (35, 43):
            return -1
        at += 1
    if at == off + 7 or at + 1 >= off + n:
        return -1
    return at + 1 - off


def _subscribe(broker, session, buf, off, n, options, identifier):
    # Subscribe to one filter; -> the granted QoS, or a reason code [3.9.3].
    subs = broker.subscriptions
    limits = broker.limits
    conn = broker.sessions.conn[session]
    qos = min(options & 3, broker.conns.option(conn, "max_qos", broker.settings.max_qos))
    levels = limits.levels
    if n > limits.topic_bytes or n >= levels and filter_ok(buf, off, n) > levels:
        subs.refused += 1
        return FILTER_INVALID
    head = _shared(buf, off, n)
    if not version3.may(broker, session, buf, off, n, qos, head):
        return UNAUTHORIZED
    node = insertion.add_node(subs, buf, off + head, n - head)
    if node == NONE:
        return QUOTA
    share = NONE
    if head and not limits.shares:
        subs.prune(node)
        return _NO_SHARES
    if head:
        share = broker.five.shares.take(node, buf, off + 7, head - 8)
        if share == NONE:
            subs.prune(node)
            return QUOTA
    is_new = insertion.find(subs, session, node, share) == NONE
    sub = insertion.add(subs, broker.sessions, session, node, qos, share)
    if head and is_new:
        broker.five.shares.joined(share, sub != NONE)
    if sub == NONE:
        return QUOTA
    broker.five.options[sub] = options & _OPTIONS
    broker.five.identifier[sub] = identifier
    if not head and (options >> 4 == 0 or options >> 4 == 1 and is_new):
        if broker.retained.blocks or buf[off] == 36:
            retain.start_scan(broker, session, sub)
    if broker._log_mask & SUBSCRIBE_LOG:
        version3.log(broker, SUBSCRIBE_LOG, session, buf, off, n, " (QoS %d)" % qos)
    return qos


def _unsubscribe(broker, session, buf, off, n):
    subs = broker.subscriptions
    head = _shared(buf, off, n)
    node = insertion.find_node(subs, buf, off + head, n - head)
    share = NONE
    if head and node != NONE:
        share = broker.five.shares.find(node, buf, off + 7, head - 8)
    sub = NONE
    if node != NONE and (share != NONE or not head):
        sub = insertion.find(subs, session, node, share)
    if broker._log_mask & UNSUBSCRIBE_LOG:
        version3.log(broker, UNSUBSCRIBE_LOG, session, buf, off, n, "")
    if sub == NONE:
        return _NOT_SUBSCRIBED
    subs.remove(broker.sessions, sub)
    return OK
