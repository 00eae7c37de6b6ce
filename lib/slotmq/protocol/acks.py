# acks.py - the packets of version 3 without a payload: PUBACK, PUBREC, PUBREL and PUBCOMP [3.4 to
# 3.7], PINGREQ and DISCONNECT [3.12, 3.14], and every one that a client may not send, or not now.
# Acknowledgements make space in the session's window, which Broker.drain() fills when the whole
# input has been handled. Owns nothing. Does not allocate.
from slotmq.constants import (BODY, END, FLAGS, LEFT, MALFORMED, NONE, OK, PACKETS_OUT, PACKET_ID,
    PROTOCOL, PUBCOMP, PUBREL, RELEASED, SENT_1, SENT_2, TOTAL)
from slotmq.delivery.lifecycle import publish_stored
from slotmq.delivery.outgoing import put_ack
from slotmq.fast import acked, unref


def handle_puback(broker, conn, pkt, buf):
    """QoS 1: the delivery is done [4.3.2-1]."""
    return _acknowledged(broker, conn, pkt, SENT_1)


def handle_pubrec(broker, conn, pkt, buf):
    """QoS 2: release the message, keep its id until PUBCOMP [4.3.3-1].

    An unknown id gets PUBREL too; otherwise the client would wait for ever."""
    result = _acknowledged(broker, conn, pkt, SENT_2)
    if not result:
        put_ack(broker, conn, PUBREL, pkt[PACKET_ID])
    return result


def handle_pubcomp(broker, conn, pkt, buf):
    """QoS 2: the delivery is done."""
    return _acknowledged(broker, conn, pkt, RELEASED)


def _acknowledged(broker, conn, pkt, state):
    packet_id = pkt[PACKET_ID]
    if pkt[TOTAL] != 4 or not packet_id:
        return MALFORMED
    session = broker.conns.session[conn]
    if acked(broker.tables, session, packet_id, state) != NONE:
        broker.sessions.progress[session] = broker.now
        return OK
    # No delivery with this id waits for this packet. If one waits for another kind, it would wait
    # for ever: a protocol error. But PUBREC may come again, and with retry_interval this may be a
    # late acknowledgement, of the message that had the id before.
    sent = broker.deliveries.find(session, packet_id)
    late = broker.settings.retry_interval or state == SENT_2 and sent == RELEASED
    return PROTOCOL if sent and not late else OK


def handle_pubrel(broker, conn, pkt, buf):
    """QoS 2: the sender releases the id. A message that waited for it is published."""
    odd = pkt[FLAGS] != 2 and broker.conns.level[conn] & 3 != 3
    if odd or pkt[TOTAL] != 4 or not pkt[PACKET_ID]:
        return MALFORMED
    sessions = broker.sessions
    session = broker.conns.session[conn]
    at = sessions.find_received(session, pkt[PACKET_ID])
    if at >= 0:
        messages = sessions.id_msg
        if messages is not None and messages[at] != NONE:
            publish_stored(broker, messages[at], session)  # if that raises, PUBREL comes again
        msg = sessions.remove_received(session, at)
        if msg != NONE:
            unref(broker.tables, msg)
    put_ack(broker, conn, PUBCOMP, pkt[PACKET_ID])
    return OK


def handle_pingreq(broker, conn, pkt, buf):
    """PINGRESP [3.12.4-1]; its two bytes of space are certain, see put_ack."""
    if pkt[BODY] != pkt[END]:
        return MALFORMED
    conns = broker.conns
    at = conns.tx_end[conn]
    conns.tx[at] = 0xD0
    conns.tx[at + 1] = 0
    conns.tx_end[conn] = at + 2
    if conns.out[conn] == 0:
        conns.mark_dirty(conn)
    broker.stats[PACKETS_OUT] += 1
    return OK


def handle_disconnect(broker, conn, pkt, buf):
    """The client disconnects: discard its will [3.14.4-3]."""
    return MALFORMED if pkt[BODY] != pkt[END] else LEFT


def handle_unexpected(broker, conn, pkt, buf):
    """A packet before CONNECT, a second CONNECT, or a packet that only servers send."""
    return PROTOCOL
