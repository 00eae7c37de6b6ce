# log_connections.py - log lines about connections: that a client connected, a packet was received,
# why a connection ended; and about exceptions. (status/log_reasons.py has refusals, and what is
# not MQTT.) Client ids, user names and topics are quoted and escaped, so that no client can forge
# a line. Loaded on demand; owns nothing; allocates the line.
import io
import socket
import sys

from slotmq.platform import ondemand
from slotmq.platform.runtime import MICROPYTHON, const

_TYPE = const(0)
_FLAGS = const(1)
_END = const(4)
_TOTAL = const(5)
_TOPIC = const(7)
_TOPIC_LEN = const(8)
_PUBLISH_TYPE = const(3)
_TOPIC_SHOWN = const(100)  # bytes
_NONE = const(0xFFFF)
_MALFORMED = const(2)
_TOO_BIG = const(4)
_REFUSED = const(5)
_TIMED_OUT = const(8)
_ERROR = const(1)
_WARNING = const(2)
_NOTICE = const(4)
_TOPIC_INVALID = const(0x90)
_DEBUG = const(64)
_USER_SHOWN = const(32)  # characters
_VERSIONS = b"\0\0\0\3\4\5\4\4"  # by level: 6 and 7 are of bridges

_PACKETS = """- CONNECT CONNACK PUBLISH PUBACK PUBREC PUBREL PUBCOMP SUBSCRIBE SUBACK
UNSUBSCRIBE UNSUBACK PINGREQ PINGRESP DISCONNECT AUTH"""

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
    line = "Received %s from %s (" % (_PACKETS.split()[pkt[_TYPE]], who(broker, conn))
    if pkt[_TYPE] == _PUBLISH_TYPE:
        line += publish(broker.shown, pkt[_FLAGS], pkt[_TOPIC], pkt[_TOPIC_LEN], pkt[_END])
    broker.log(_DEBUG, "%s%d bytes)" % (line, pkt[_TOTAL]))


def who(broker, conn):
    """Whose connection it is."""
    for each in broker.outgoing.every if broker.outgoing else ():
        if each.conn == conn:
            return "the bridge %r" % each.options.name
    session = broker.conns.session[conn]
    if session == _NONE:
        return "a new client"
    return repr(broker.sessions.client_id(session).decode())


def publish(buf, flags, start, n, end):
    """Flags and topic of a PUBLISH, as far as it has come."""
    topic = bytes(buf[start : min(start + n, end, start + _TOPIC_SHOWN)])
    try:
        topic = topic.decode()
    except ValueError:  # UnicodeError, too; it is shown as bytes
        pass
    return "d%d, q%d, r%d, %r, " % (flags >> 3 & 1, flags >> 1 & 3, flags & 1, topic)


def connected(broker, conn, fields):
    """A client has connected; `fields` are those of its CONNECT."""
    who = broker.sessions.client_id(broker.conns.session[conn]).decode()
    where, user = address(broker, conn)
    user = user and ", u%r" % user
    what = (where, who, fields.level, fields.flags >> 1 & 1, fields.keep_alive, user)
    broker.log(_NOTICE, "New client connected from %s as %r (p%d, c%d, k%d%s)." % what)


def refused(broker, conn, reason):
    """CONNACK refuses a client. reason: a reason code, or (return code or reason code, fields of
    CONNECT, what was too low, if anything)."""
    ondemand.take("status.log_reasons", broker.now).refused(broker, conn, reason)


def denied(broker, conn, what):
    """SUBACK refuses a filter; what: (filter, reason code)."""
    ondemand.take("status.log_reasons", broker.now).denied(broker, conn, what)


def ended(broker, conn, reason):
    """A connection ends, with or without a session. reason: a result, or a version 5 code."""
    conns = broker.conns
    session = conns.session[conn]
    if reason == _REFUSED:
        return  # already logged
    take = ondemand.take
    why = (
        _WHY.split("\n")[reason]
        if reason < 0x80
        else take("status.log_reasons", broker.now).name(reason)
    )
    if reason == _TIMED_OUT:
        why += _late(broker, conn)
    if reason == _TOO_BIG:
        why += take("status.log_reasons", broker.now).too_large(broker)
    where, user = address(broker, conn)
    if session == _NONE:
        why = take("status.log_reasons", broker.now).ended(broker, conn, reason, why)
        if why:
            broker.log(_NOTICE, "Connection from %s closed: %s." % (where, why))
        return
    if reason in (_MALFORMED, _TOPIC_INVALID):
        why += take("status.log_reasons", broker.now).too_long(broker, broker.pkt)
    who = broker.sessions.client_id(session).decode()
    what = (who, where, _VERSIONS[conns.level[conn]], user and ", u%r" % user, why)
    broker.log(_NOTICE, "Client %r [%s, p%d%s] disconnected: %s." % what)


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
    if conns.session[conn] == _NONE and waited >= broker.settings.connect_timeout * 10:
        text = b" (connect_timeout)"
    return text.decode()


def address(broker, conn):
    """Address and port of a connection, and its user name or ""."""
    peer = broker.conns.source[conn]
    user = ""
    if isinstance(peer, list):
        peer, user = peer
        if isinstance(user, bytes):  # whole, for hooks
            user = user.decode()[:_USER_SHOWN]
    if not peer:
        return "the program", user
    if isinstance(peer, bytearray):  # a struct sockaddr, of MicroPython on a computer
        family, host, port = socket.sockaddr(peer)[:3]
        host = socket.inet_ntop(family, host)
    else:
        host, port = peer[:2]
    return ("[%s]:%d" if ":" in host else "%s:%d") % (host, port), user


def _place(failed):
    # Where it was raised, as far as the port keeps that. Not its text, which may have a client's
    # bytes in it.
    if not MICROPYTHON:
        at = __import__("traceback").extract_tb(failed.__traceback__)[-1]
        return "%s:%d, in %s" % (at.filename, at.lineno, at.name)
    out = io.StringIO()
    sys.print_exception(failed, out)
    place = "unknown place"
    for line in out.getvalue().split("\n")[1:]:
        if line[:7] != "  File ":
            break
        place = line.strip()
    return place


def caught(broker, conn, failed):
    """An exception has ended a turn. failed: the exception if it is a defect, else None: the heap
    was used up. If that has left the journal incomplete, set it as full, and log that once until
    it can be written again."""
    is_memory = failed is None or isinstance(failed, MemoryError)
    if failed and broker._log_mask & _ERROR and (conn >= 0 or _is_rare(broker.loop)):
        name = type(failed).__name__ + (" with the heap locked" if is_memory else "")
        broker.log(_ERROR, "%s, a defect: %s." % (name, _place(failed)))
    if not is_memory:
        return
    journal = broker.journal
    if not journal or journal.whole:
        return
    journal.failures += 1
    if broker.journal_full is True:
        return
    broker.journal_full = broker.subscriptions.journal_full = True
    broker.fast_path = None
    waits = journal.always
    then = "all clients wait until that changes" if waits else "nothing new is promised"
    broker.log(_WARNING, "The journal: no heap is left, %s." % then)


def _is_rare(loop):
    # It may come back in each turn: the 1st, the 2nd, the 4th, the 8th is logged.
    n = loop.exhausted + loop.exceptions
    return not n & (n - 1)
