# handle_acks.py - PUBACK, PUBREC, PUBREL and PUBCOMP [3.4 to 3.7]. What they free
# in the window is used by the pump when the whole input has been handled.
# Does not allocate.
from slotmq.deliver import finish
from slotmq.lifecycle import publish_stored
from slotmq.outbox import put_ack
from slotmq.runtime import const

_NONE = const(0xFFFF)
_FLAGS = const(1)
_PACKET_ID = const(6)
_PUBREL = const(0x62)
_PUBCOMP = const(0x70)
_SENT_1 = const(1)
_SENT_2 = const(2)
_RELEASED = const(3)
_OK = const(0)
_MALFORMED = const(2)


def handle_puback(broker, conn, pkt, buf):
    """QoS 1: the delivery is done [4.3.2-1]."""
    session = broker.conns.session[conn]
    entry = broker.deliveries.find(session, pkt[_PACKET_ID])
    if entry != _NONE and broker.deliveries.state[entry] == _SENT_1:
        finish(broker, entry)
        broker.sessions.progress[session] = broker.now
    return _OK


def handle_pubrec(broker, conn, pkt, buf):
    """QoS 2: the message may go, its id stays until PUBCOMP [4.3.3-1]."""
    session = broker.conns.session[conn]
    deliveries = broker.deliveries
    entry = deliveries.find(session, pkt[_PACKET_ID])
    if entry != _NONE and deliveries.state[entry] == _SENT_2:
        deliveries.state[entry] = _RELEASED
        broker.messages.unref(deliveries.msg[entry])
        deliveries.msg[entry] = _NONE
        broker.sessions.progress[session] = broker.now
    # An id that is not known gets its PUBREL too: else the client waits for ever.
    put_ack(broker, conn, _PUBREL, pkt[_PACKET_ID])
    return _OK


def handle_pubrel(broker, conn, pkt, buf):
    """QoS 2: the sender is done with the id; with method A the message goes out now."""
    if pkt[_FLAGS] != 2 and broker.conns.level[conn] != 3:
        return _MALFORMED
    sessions = broker.sessions
    session = broker.conns.session[conn]
    at = sessions.find_received(session, pkt[_PACKET_ID])
    if at >= 0:
        msg = sessions.remove_received(session, at)
        if msg != _NONE:
            publish_stored(broker, msg)
            broker.messages.unref(msg)
    put_ack(broker, conn, _PUBCOMP, pkt[_PACKET_ID])
    return _OK


def handle_pubcomp(broker, conn, pkt, buf):
    """QoS 2: the delivery is done."""
    session = broker.conns.session[conn]
    entry = broker.deliveries.find(session, pkt[_PACKET_ID])
    if entry != _NONE and broker.deliveries.state[entry] == _RELEASED:
        finish(broker, entry)
        broker.sessions.progress[session] = broker.now
    return _OK
