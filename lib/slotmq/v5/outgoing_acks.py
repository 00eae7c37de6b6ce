# outgoing_acks.py - acknowledgements with a reason code, and DISCONNECT, for a client of MQTT 5.0
# [5.0, 3.4 to 3.7, 3.14]. Owns nothing. Does not allocate.
from slotmq.constants import PACKETS_OUT
from slotmq.delivery.encode import put_u16
from slotmq.delivery.outgoing import put_ack

_DISCONNECT = 0xE0
# The results of constants.py as reason codes of DISCONNECT [2.4]; 0: no packet
_REASONS = b"\0\0\x81\x82\x95\0\x97\x8e\x8d\0\x8b\0\0"


def put_reason(broker, conn, first, packet_id, reason):
    """Put an acknowledgement for the connection that is being read.

    Space for four bytes is certain. The reason is omitted if there is no space for a fifth byte,
    or if the packet would be larger than the client accepts [3.4.2.2.2]."""
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
    """A packet has been put into tx; it ends at `end`."""
    conns = broker.conns
    conns.tx_end[conn] = end
    if conns.out[conn] == 0:
        conns.mark_dirty(conn)
    broker.stats[PACKETS_OUT] += 1


def space_for(broker, conn, n):
    """The offset in tx for an answer of n bytes, after a flush if necessary; -1: no space.

    It leaves free what is reserved for answers to later packets of the same read."""
    conns = broker.conns
    most = broker.five.packet_max[conn]
    if 0 < most < n:
        return -1
    if conns.tx_end[conn] + n > conns.tx_limit[conn] and conns.out[conn] != 2:
        broker.flush(conn)
    return conns.tx_end[conn] if conns.tx_end[conn] + n <= conns.tx_limit[conn] else -1


def goodbye(broker, conn, result):
    """DISCONNECT with the reason, if there is space, and nothing after it [3.14.4-1]."""
    reason = result if result & 0x80 else _REASONS[result]
    conns = broker.conns
    # Within a chunked send no packet can be sent.
    if reason and conns.chunked_msg[conn] == 0xFFFF:
        conns.tx_limit[conn] = (conn + 1) * conns.tx_bytes  # no space is reserved any more
        at = space_for(broker, conn, 4)
        if at >= 0:
            tx = conns.tx
            sent(broker, conn, put_u16(tx, put_u16(tx, at, _DISCONNECT << 8 | 2), reason << 8))
            conns.tx_limit[conn] = 0
