# telling.py - what the log says of connections: packets that came, and why one ended; and of a
# journal whose own code finds no heap. Loaded on demand; allocates the line.
from slotmq.runtime import const

_TYPE = const(0)
_TOTAL = const(5)
_NONE = const(0xFFFF)
_WARNING = const(2)
_NOTICE = const(4)
_DEBUG = const(64)

_PACKETS = """- CONNECT CONNACK PUBLISH PUBACK PUBREC PUBREL PUBCOMP SUBSCRIBE SUBACK
UNSUBSCRIBE UNSUBACK PINGREQ PINGRESP DISCONNECT AUTH"""

# By result. One text: it takes a third of the heap.
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
left with its will"""


def received(broker, conn, pkt):
    """A packet, whose record is `pkt`."""
    session = broker.conns.session[conn]
    who = "a new client" if session == _NONE else broker.sessions.client_id(session).decode()
    words = _PACKETS.split()[pkt[_TYPE]], who, pkt[_TOTAL]
    broker.log(_DEBUG, "Received %s from %s (%d bytes)" % words)


def ended(broker, conn, reason):
    """The connection of a session ends: a result, or a reason code of version 5."""
    who = broker.sessions.client_id(broker.conns.session[conn]).decode()
    why = "reason 0x%02x" % reason if reason & 0x80 else _WHY.split("\n")[reason]
    broker.log(_NOTICE, "Client %s disconnected: %s." % (who, why))


def note(broker, conn, _):
    """There was no heap for something: for the journal? Once, until there is room again."""
    journal = broker.journal
    if not journal or journal.whole:
        return
    journal.failures += 1
    if broker.full == 1:
        return
    broker.full = broker.subscriptions.full = 1
    broker.lane = None
    waits = journal.always
    then = "all clients wait until that changes" if waits else "nothing new is promised"
    broker.log(_WARNING, "The journal: no heap is left, %s." % then)
