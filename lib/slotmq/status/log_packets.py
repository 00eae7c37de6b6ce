# log_packets.py - log lines about each packet that was received. Topics are quoted and escaped.
# Loaded on demand, with debug lines only; owns nothing; allocates the line.
from slotmq.constants import (DEBUG, END, FLAGS, NONE, PUBLISH_TYPE, TOPIC, TOPIC_LEN, TOPIC_SHOWN,
    TOTAL, TYPE)


_PACKETS = """- CONNECT CONNACK PUBLISH PUBACK PUBREC PUBREL PUBCOMP SUBSCRIBE SUBACK
UNSUBSCRIBE UNSUBACK PINGREQ PINGRESP DISCONNECT AUTH"""


def received(broker, conn, pkt):
    """A packet was received; `pkt` is its record."""
    line = "Received %s from %s (" % (_PACKETS.split()[pkt[TYPE]], who(broker, conn))
    if pkt[TYPE] == PUBLISH_TYPE:
        line += publish(broker.conns.shown, pkt[FLAGS], pkt[TOPIC], pkt[TOPIC_LEN], pkt[END])
    broker.log(DEBUG, "%s%d bytes)" % (line, pkt[TOTAL]))


def who(broker, conn):
    """Whose connection it is."""
    for each in broker.bridges.every if broker.bridges else ():
        if each.conn == conn:
            return "the bridge %r" % each.options.name
    session = broker.conns.session[conn]
    if session == NONE:
        return "a new client"
    return repr(broker.sessions.client_id(session).decode())


def publish(buf, flags, start, n, end):
    """Flags and topic of a PUBLISH, as far as it has come."""
    topic = bytes(buf[start : min(start + n, end, start + TOPIC_SHOWN)])
    try:
        topic = topic.decode()
    except ValueError:  # UnicodeError, too; it is shown as bytes
        pass
    return "d%d, q%d, r%d, %r, " % (flags >> 3 & 1, flags >> 1 & 3, flags & 1, topic)
