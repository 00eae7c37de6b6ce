# subscribe.py - SUBSCRIBE and UNSUBSCRIBE of version 3 [3.8, 3.10]. The whole packet is checked
# before anything is changed. Retained messages follow when it has been handled (retain.scan).
# Owns nothing. Control plane: may allocate and free.
from slotmq.constants import (BLOCKED, BODY, BRIDGE, END, FAILURE, FILTER_INVALID, FLAGS,
    MALFORMED, NONE, NOTICE, OK, PACKETS_OUT, POLICY_DISCONNECT, QUOTA, SUBACK, SUBSCRIBE_LOG,
    SUBSCRIBE_TYPE, TYPE, UNAUTHORIZED, UNSUBACK, UNSUBSCRIBE_LOG)
from slotmq.delivery import retain
from slotmq.delivery.encode import length_bytes, put_header, put_u16
from slotmq.delivery.outgoing import put_ack
from slotmq.fast import filter_ok, utf8_ok
from slotmq.platform import ondemand
from slotmq.tables import insertion

_OF_BRIDGE = 4 | 8  # No Local, Retain As Published


def handle(broker, conn, pkt, buf):
    """SUBSCRIBE or UNSUBSCRIBE of version 3; a result."""
    if pkt[TYPE] == SUBSCRIBE_TYPE:
        return _handle_subscribe(broker, conn, pkt, buf)
    return _handle_unsubscribe(broker, conn, pkt, buf)


def _handle_subscribe(broker, conn, pkt, buf):
    count = _check(broker, conn, pkt, buf, 1)
    if count <= 0:
        return MALFORMED
    conns = broker.conns
    at = conns.tx_end[conn]
    size = count + 3 + length_bytes(count + 2)
    if at + size > (conn + 1) * conns.tx_bytes and conns.out[conn] != BLOCKED:
        broker.flush(conn)
        at = conns.tx_end[conn]
    if at + size > (conn + 1) * conns.tx_bytes:
        return POLICY_DISCONNECT  # more filters than an answer has space for
    body = pkt[BODY]
    tx = conns.tx
    put = put_u16(tx, put_header(tx, at, SUBACK, count + 2), buf[body] << 8 | buf[body + 1])
    body += 2
    while body < pkt[END]:
        n = buf[body] << 8 | buf[body + 1]
        body += 2
        tx[put] = code = add(broker, conns.session[conn], buf, body, n, buf[body + n])
        if code >= FAILURE:
            denied(broker, conn, code, buf, body, n)
            tx[put] = FAILURE
        put += 1
        body += n + 1
    conns.tx_end[conn] = put
    if conns.out[conn] == 0:
        conns.mark_dirty(conn)
    broker.stats[PACKETS_OUT] += 1
    return OK


def _handle_unsubscribe(broker, conn, pkt, buf):
    if _check(broker, conn, pkt, buf, 0) <= 0:
        return MALFORMED
    body = pkt[BODY]
    packet_id = buf[body] << 8 | buf[body + 1]
    body += 2
    while body < pkt[END]:
        n = buf[body] << 8 | buf[body + 1]
        _unsubscribe(broker, broker.conns.session[conn], buf, body + 2, n)
        body += n + 2
    put_ack(broker, conn, UNSUBACK, packet_id)
    return OK


def _check(broker, conn, pkt, buf, options):
    # -> the number of filters; -1: something is wrong [3.8.3, 3.10.3]. options: bytes after each
    # filter.
    at = pkt[BODY]
    end = pkt[END]
    if pkt[FLAGS] != 2 and broker.conns.level[conn] & 3 != 3 or at + 2 > end:
        return -1
    if buf[at] == 0 == buf[at + 1]:
        return -1
    at += 2
    count = 0
    while at < end:
        n = buf[at] << 8 | buf[at + 1] if at + 2 <= end else 0
        at += 2
        if at + n + options > end or not utf8_ok(buf, at, n, 0) or not filter_ok(buf, at, n):
            return -1
        at += n
        if options and buf[at] > 2:
            return -1
        at += options
        count += 1
    return count


def add(broker, session, buf, off, n, qos):
    """Subscribe to one filter; -> the granted QoS, or the reason code of version 5, for which the
    client gets 0x80 [3.9.3-2]."""
    subs = broker.subscriptions
    conn = broker.sessions.conn[session]
    qos = min(qos, broker.conns.option(conn, "max_qos", broker.settings.max_qos))
    levels = broker.limits.levels
    if n > broker.limits.topic_bytes or n >= levels and filter_ok(buf, off, n) > levels:
        subs.refused += 1
        return FILTER_INVALID
    if not may(broker, session, buf, off, n, qos):
        return UNAUTHORIZED
    node = insertion.add_node(subs, buf, off, n)
    if node == NONE:
        return QUOTA
    sub = insertion.add(subs, broker.sessions, session, node, qos)
    if sub == NONE:
        return QUOTA
    if broker.five:
        broker.five.options[sub] = _OF_BRIDGE if subs.kind[session] & BRIDGE else 0
        broker.five.identifier[sub] = 0
    if broker.retained.blocks or buf[off] == 36:  # else nothing is retained
        retain.start_scan(broker, session, sub)
    if broker._log_mask & SUBSCRIBE_LOG:
        log(broker, SUBSCRIBE_LOG, session, buf, off, n, " (QoS %d)" % qos)
    return qos


def may(broker, session, buf, off, n, qos, share=0):
    """May the session subscribe? share: how many bytes of $share/name/ are before the filter."""
    acl = broker.acl
    if acl and not acl.may_subscribe(session, bytes(buf[off + share : off + n])):
        return False
    if broker.may_subscribe is None:
        return True
    asking = ondemand.take("embed.asking", broker.now)
    return asking.may_subscribe(broker, session, bytes(buf[off : off + n]), qos)


def _unsubscribe(broker, session, buf, off, n):
    subs = broker.subscriptions
    node = insertion.find_node(subs, buf, off, n)
    if node != NONE:
        sub = insertion.find(subs, session, node)
        if sub != NONE:
            subs.remove(broker.sessions, sub)
    if broker._log_mask & UNSUBSCRIBE_LOG:
        log(broker, UNSUBSCRIBE_LOG, session, buf, off, n, "")


def denied(broker, conn, code, buf, off, n):
    """Log a filter that was not granted; code: the reason."""
    if broker._log_mask & NOTICE:
        ondemand.log_event(broker, "denied", conn, (bytes(buf[off : off + n]), code))


def log(broker, bit, session, buf, off, n, tail):
    who = broker.sessions.client_id(session).decode()
    broker.log(bit, "%r %r%s" % (who, bytes(buf[off : off + n]).decode(), tail))
