# log_connections.py - log lines about connections: that a client connected, why one has ended.
# (status/log_reasons.py has refusals, and what is not MQTT; log_packets.py has each packet;
# log_defects.py has exceptions.) Client ids, user names and topics are quoted and escaped, so that
# no client can forge a line. Loaded on demand; owns nothing; allocates the line.
import socket

from slotmq.constants import (MALFORMED, NONE, NOTICE, REFUSED, TIMED_OUT, TOO_BIG, TOPIC_INVALID,
    USER_SHOWN)
from slotmq.platform import ondemand

_VERSIONS = b"\0\0\0\3\4\5\4\4"  # by level: 6 and 7 are of bridges

# A line for each result. One text takes a third of the heap that a table would.
_WHY = """\

left
malformed packet
protocol error
packet too large
refused
table full
taken over by the same client id
timed out
lost
broker stops
left with its will
it does not read"""


def received(broker, conn, pkt):
    """A packet was received; `pkt` is its record."""
    ondemand.take("status.log_packets", broker.now).received(broker, conn, pkt)


def connected(broker, conn, fields):
    """A client has connected; `fields` are those of its CONNECT."""
    who = broker.sessions.client_id(broker.conns.session[conn]).decode()
    where, user = address(broker, conn)
    user = user and ", u%r" % user
    what = (where, who, fields.level, fields.flags >> 1 & 1, fields.keep_alive, user)
    broker.log(NOTICE, "New client connected from %s as %r (p%d, c%d, k%d%s)." % what)


def refused(broker, conn, reason):
    """CONNACK refuses a client; reason: see status/log_reasons.py."""
    ondemand.take("status.log_reasons", broker.now).refused(broker, conn, reason)


def denied(broker, conn, what):
    """SUBACK refuses a filter; what: (filter, reason code)."""
    ondemand.take("status.log_reasons", broker.now).denied(broker, conn, what)


def result(broker, reason):
    """The text of a result, or of a version 5 code."""
    if reason < 0x80:
        return _WHY.split("\n")[reason]
    return ondemand.take("status.log_reasons", broker.now).name(reason)


def ended(broker, conn, reason):
    """A connection ends, with or without a session. reason: a result, or a version 5 code."""
    conns = broker.conns
    session = conns.session[conn]
    if reason == REFUSED:
        return  # already logged
    take = ondemand.take
    why = result(broker, reason)
    if reason == TIMED_OUT:
        why += _late(broker, conn)
    if reason == TOO_BIG:
        why += take("status.log_reasons", broker.now).too_large(broker)
    where, user = address(broker, conn)
    if session == NONE:
        why = take("status.log_reasons", broker.now).ended(broker, conn, reason, why)
        if why:
            broker.log(NOTICE, "Connection from %s closed: %s." % (where, why))
        return
    if reason in (MALFORMED, TOPIC_INVALID):
        why += take("status.log_reasons", broker.now).too_long(broker, broker.pkt)
    who = broker.sessions.client_id(session).decode()
    what = (who, where, _VERSIONS[conns.level[conn]], user and ", u%r" % user, why)
    broker.log(NOTICE, "Client %r [%s, p%d%s] disconnected: %s." % what)


def _late(broker, conn):
    # Which time limit was exceeded, as net/timers.py checks it.
    conns = broker.conns
    now = broker.now
    most = conns.keep_alive_timeout[conn]
    if most and now - conns.last_activity[conn] >= most:
        text = b" (keep-alive)"
    elif now - conns.buffered_since[conn] >= broker.settings.packet_timeout * 10:
        text = b" (packet_timeout)"
    else:
        text = b" (too slow, another waits for its buffer)"
    waited = now - conns.opened[conn]
    if conns.session[conn] == NONE and waited >= broker.settings.connect_timeout * 10:
        text = b" (connect_timeout)"
    return text.decode()


def address(broker, conn):
    """Address and port of a connection, and its user name or ""."""
    peer = broker.conns.source[conn]
    user = ""
    if isinstance(peer, list):
        peer, user = peer
        if isinstance(user, bytes):  # whole, for hooks
            user = user.decode()[:USER_SHOWN]
    if not peer:
        return "the program", user
    if isinstance(peer, bytearray):  # a struct sockaddr, of MicroPython on a computer
        family, host, port = socket.sockaddr(peer)[:3]
        host = socket.inet_ntop(family, host)
    else:
        host, port = peer[:2]
    return ("[%s]:%d" if ":" in host else "%s:%d") % (host, port), user


def caught(broker, conn, failed):
    """An exception has ended a turn."""
    ondemand.take("status.log_defects", broker.now).caught(broker, conn, failed)
