# log_packets.py - log lines about each packet that was received. Topics are quoted and escaped.
# Loaded on demand, with debug lines only; owns nothing; allocates the line.
from slotmq.platform.runtime import const

_TYPE = const(0)
_FLAGS = const(1)
_END = const(4)
_TOTAL = const(5)
_TOPIC = const(7)
_TOPIC_LEN = const(8)
_PUBLISH_TYPE = const(3)
_TOPIC_SHOWN = const(100)  # bytes
_NONE = const(0xFFFF)
_DEBUG = const(64)

_PACKETS = """- CONNECT CONNACK PUBLISH PUBACK PUBREC PUBREL PUBCOMP SUBSCRIBE SUBACK
UNSUBSCRIBE UNSUBACK PINGREQ PINGRESP DISCONNECT AUTH"""


def received(broker, conn, pkt):
    """A packet was received; `pkt` is its record."""
    line = "Received %s from %s (" % (_PACKETS.split()[pkt[_TYPE]], who(broker, conn))
    if pkt[_TYPE] == _PUBLISH_TYPE:
        line += publish(broker.conns.shown, pkt[_FLAGS], pkt[_TOPIC], pkt[_TOPIC_LEN], pkt[_END])
    broker.log(_DEBUG, "%s%d bytes)" % (line, pkt[_TOTAL]))


def who(broker, conn):
    """Whose connection it is."""
    for each in broker.bridges.every if broker.bridges else ():
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
