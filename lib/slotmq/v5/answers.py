# answers.py - what the broker says to a client of MQTT 5.0 beside PUBLISH:
# acknowledgements with a reason, DISCONNECT [5.0, 3.4 to 3.7, 3.14]. Does not allocate.
from slotmq.delivery.encode import put_u16
from slotmq.delivery.outgoing import put_ack
from slotmq.platform.runtime import const

_PACKETS_OUT = const(1)
_DISCONNECT = const(0xE0)
# Why a connection ends, protocol/packet.py's results 0 to 11, as reason codes [2.4]; 0: no packet
_REASONS = b"\0\0\x81\x82\x95\0\x97\x8e\x8d\0\x8b\0\0"


def put_reason(broker, conn, first, packet_id, reason):
    """An acknowledgement to the connection that is being read.

    Four bytes of space are certain; the reason is left away where a fifth is not, or
    would be more than the client takes [3.4.2.2.2]."""
    conns = broker.conns
    at = conns.tx_end[conn]
    most = broker.five.packet_max[conn]
    if not reason or at + 5 > conns.tx_limit[conn] or 0 < most < 5:
        put_ack(broker, conn, first, packet_id)
        return
    tx = conns.tx
    tx[put_u16(tx, put_u16(tx, at, first << 8 | 3), packet_id)] = reason
    sent(broker, conn, at + 5)


def sent(broker, conn, end):
    """A packet stands in tx up to `end`."""
    conns = broker.conns
    conns.tx_end[conn] = end
    if conns.out[conn] == 0:
        conns.mark_dirty(conn)
    broker.stats[_PACKETS_OUT] += 1


def space_for(broker, conn, n):
    """Where n bytes may be put for an answer, after a flush if need be; -1: nowhere.

    What is reserved for the answers to what was read behind it stays free."""
    conns = broker.conns
    most = broker.five.packet_max[conn]
    if 0 < most < n:
        return -1
    if conns.tx_end[conn] + n > conns.tx_limit[conn] and conns.out[conn] != 2:
        broker.flush(conn)
    return conns.tx_end[conn] if conns.tx_end[conn] + n <= conns.tx_limit[conn] else -1


def goodbye(broker, conn, result):
    """DISCONNECT with the reason, if there is space, and nothing behind it [3.14.4-1]."""
    reason = result if result & 0x80 else _REASONS[result]
    conns = broker.conns
    # in the midst of a message in chunks nothing can be said
    if reason and conns.chunked_msg[conn] == 0xFFFF:
        conns.tx_limit[conn] = (conn + 1) * conns.tx_bytes  # nothing is answered any more
        at = space_for(broker, conn, 4)
        if at >= 0:
            tx = conns.tx
            sent(broker, conn, put_u16(tx, put_u16(tx, at, _DISCONNECT << 8 | 2), reason << 8))
            conns.tx_limit[conn] = 0
