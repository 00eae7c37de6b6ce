# ping_disconnect.py - PINGREQ and DISCONNECT of version 3, and every packet that a client may not
# send, or not now. A file of its own, since v5/dispatch.py uses it too. Owns nothing. Does not
# allocate.
from slotmq.platform.runtime import const

_BODY = const(3)
_END = const(4)
_PACKETS_OUT = const(1)
_OK = const(0)
_LEFT = const(1)
_MALFORMED = const(2)
_PROTOCOL = const(3)


def handle_pingreq(broker, conn, pkt, buf):
    """PINGRESP [3.12.4-1]; its two bytes of space are certain, see put_ack."""
    if pkt[_BODY] != pkt[_END]:
        return _MALFORMED
    conns = broker.conns
    at = conns.tx_end[conn]
    conns.tx[at] = 0xD0
    conns.tx[at + 1] = 0
    conns.tx_end[conn] = at + 2
    if conns.out[conn] == 0:
        conns.mark_dirty(conn)
    broker.stats[_PACKETS_OUT] += 1
    return _OK


def handle_disconnect(broker, conn, pkt, buf):
    """The client disconnects: discard its will [3.14.4-3]."""
    return _MALFORMED if pkt[_BODY] != pkt[_END] else _LEFT


def handle_unexpected(broker, conn, pkt, buf):
    """A packet before CONNECT, a second CONNECT, or a packet that only servers send."""
    return _PROTOCOL
