# acks.py - acknowledgements and DISCONNECT from a client of MQTT 5.0, of every legal length
# [5.0, 3.4 to 3.7, 3.14]. Owns nothing. Does not allocate.
from slotmq.constants import (BODY, END, FLAGS, LEFT, LEFT_WITH_WILL, MALFORMED_PACKET, NONE, OK,
    PACKET_ID, PROTOCOL_ERROR, PUBCOMP, PUBREL, RELEASED, SENT_1, SENT_2, SESSION_EXPIRY)
from slotmq.delivery.lifecycle import publish_stored
from slotmq.fast import acked, finish, unref
from slotmq.v5.outgoing_acks import put_reason
from slotmq.v5.properties import scan

_IN_ACK = 8
_IN_DISCONNECT = 64
# Reason codes [2.4]
_NO_SUCH_ID = 0x92
# The reason codes that a client may send in PUBACK and PUBREC, in PUBREL and PUBCOMP, and in
# DISCONNECT. Any other can be parsed but is not allowed: a Protocol Error [1.2]
_OF_RECEIVER = b"\0\x10\x80\x83\x87\x90\x91\x97\x99"
_OF_RELEASE = b"\0\x92"
_OF_DISCONNECT = b"\0\x04\x80\x81\x82\x83\x90\x93\x94\x95\x96\x97\x98\x99"


def _read(broker, pkt, buf, legal):
    # -> the reason code of an acknowledgement, or -reason code of the error in it.
    at = pkt[BODY] + 2
    end = pkt[END]
    code = buf[at] if at < end else 0
    if at + 1 < end:
        at = scan(buf, at + 1, end, _IN_ACK, broker.five.values)
        if at != end:
            return at if at < 0 else -MALFORMED_PACKET
    if not pkt[PACKET_ID]:
        return -PROTOCOL_ERROR  # the broker sends no packet id 0 [2.2.1]
    return code if code in legal else -PROTOCOL_ERROR


def handle_puback(broker, conn, pkt, buf):
    """QoS 1: the delivery ends, whatever the reason code [4.8.2-6]."""
    code = _read(broker, pkt, buf, _OF_RECEIVER)
    if code < 0:
        return -code
    return _acknowledged(broker, conn, pkt, SENT_1)


def handle_pubrec(broker, conn, pkt, buf):
    """QoS 2: send PUBREL; a reason code of 0x80 or more ends the delivery [4.3.3-4]."""
    code = _read(broker, pkt, buf, _OF_RECEIVER)
    if code < 0:
        return -code
    packet_id = pkt[PACKET_ID]
    sent = broker.deliveries.find(broker.conns.session[conn], packet_id)
    if sent == SENT_1 or sent == RELEASED and code & 0x80:
        return PROTOCOL_ERROR
    if code & 0x80:
        if sent:
            finish(broker.tables, packet_id - 1)
        return OK
    if sent == SENT_2:
        _acknowledged(broker, conn, pkt, SENT_2)
    put_reason(broker, conn, PUBREL, packet_id, 0 if sent else _NO_SUCH_ID)
    return OK


def handle_pubrel(broker, conn, pkt, buf):
    """QoS 2: the sender releases the packet id."""
    if pkt[FLAGS] != 2:
        return MALFORMED_PACKET  # [3.6.1-1]
    code = _read(broker, pkt, buf, _OF_RELEASE)
    if code < 0:
        return -code
    sessions = broker.sessions
    session = broker.conns.session[conn]
    at = sessions.find_received(session, pkt[PACKET_ID])
    if at >= 0:
        messages = sessions.id_msg
        if messages is not None and messages[at] != NONE:
            broker.five.publisher = session
            publish_stored(broker, messages[at], session)  # if it raises, PUBREL is sent again
            broker.five.publisher = NONE
        msg = sessions.remove_received(session, at)
        if msg != NONE:
            unref(broker.tables, msg)
    put_reason(broker, conn, PUBCOMP, pkt[PACKET_ID], 0 if at >= 0 else _NO_SUCH_ID)
    return OK


def handle_pubcomp(broker, conn, pkt, buf):
    """QoS 2: the delivery ends."""
    code = _read(broker, pkt, buf, _OF_RELEASE)
    if code < 0:
        return -code
    return _acknowledged(broker, conn, pkt, RELEASED)


def _acknowledged(broker, conn, pkt, state):
    session = broker.conns.session[conn]
    if acked(broker.tables, session, pkt[PACKET_ID], state) == NONE:
        # A delivery with this id that waits for another kind of packet would wait for ever.
        sent = broker.deliveries.find(session, pkt[PACKET_ID])
        return PROTOCOL_ERROR if sent else OK
    broker.sessions.progress[session] = broker.now
    return OK


def handle_disconnect(broker, conn, pkt, buf):
    """The client leaves, with or without its will, and may change its session's expiry."""
    at = pkt[BODY]
    end = pkt[END]
    if at == end:
        return LEFT
    code = buf[at]
    values = broker.five.values
    values[0] = 0
    if at + 1 < end:
        at = scan(buf, at + 1, end, _IN_DISCONNECT, values)
        if at != end:
            return -at if at < 0 else MALFORMED_PACKET
    if code not in _OF_DISCONNECT:
        return PROTOCOL_ERROR
    session = broker.conns.session[conn]
    if values[0] >> SESSION_EXPIRY & 1:
        expiry = values[SESSION_EXPIRY]
        if expiry and not broker.five.expiry[session]:
            return PROTOCOL_ERROR  # [3.1.2-23 and 3.14.2.2.2]
        most = broker.settings.persistent_client_expiration
        broker.five.set_expiry(broker, session, min(expiry, most) if most else expiry)
    return LEFT_WITH_WILL if code and broker.sessions.will[session] != NONE else LEFT
