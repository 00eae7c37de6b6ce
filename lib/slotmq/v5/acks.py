# acks.py - acknowledgements and DISCONNECT from a client of MQTT 5.0, of every legal length
# [5.0, 3.4 to 3.7, 3.14]. Owns nothing. Does not allocate.
from slotmq.delivery.lifecycle import publish_stored
from slotmq.fast import acked, finish, unref
from slotmq.platform.runtime import const
from slotmq.v5.outgoing_acks import put_reason
from slotmq.v5.properties import scan

_NONE = const(0xFFFF)
_FLAGS = const(1)
_BODY = const(3)
_END = const(4)
_PACKET_ID = const(6)
_PUBREL = const(0x62)
_PUBCOMP = const(0x70)
_SENT_1 = const(1)
_SENT_2 = const(2)
_RELEASED = const(3)
_OK = const(0)
_LEFT = const(1)
_LEFT_WITH_WILL = const(11)
_IN_ACK = const(8)
_IN_DISCONNECT = const(64)
_SESSION_EXPIRY = const(7)
# Reason codes [2.4]
_MALFORMED_PACKET = const(0x81)
_PROTOCOL_ERROR = const(0x82)
_NO_SUCH_ID = const(0x92)
# The reason codes that a client may send in PUBACK and PUBREC, in PUBREL and PUBCOMP, and in
# DISCONNECT. Any other can be parsed but is not allowed: a Protocol Error [1.2]
_OF_RECEIVER = b"\0\x10\x80\x83\x87\x90\x91\x97\x99"
_OF_RELEASE = b"\0\x92"
_OF_DISCONNECT = b"\0\x04\x80\x81\x82\x83\x90\x93\x94\x95\x96\x97\x98\x99"


def _read(broker, pkt, buf, legal):
    # -> the reason code of an acknowledgement, or -reason code of the error in it.
    at = pkt[_BODY] + 2
    end = pkt[_END]
    code = buf[at] if at < end else 0
    if at + 1 < end:
        at = scan(buf, at + 1, end, _IN_ACK, broker.five.values)
        if at != end:
            return at if at < 0 else -_MALFORMED_PACKET
    if not pkt[_PACKET_ID]:
        return -_PROTOCOL_ERROR  # the broker sends no packet id 0 [2.2.1]
    return code if code in legal else -_PROTOCOL_ERROR


def handle_puback(broker, conn, pkt, buf):
    """QoS 1: the delivery ends, whatever the reason code [4.8.2-6]."""
    code = _read(broker, pkt, buf, _OF_RECEIVER)
    if code < 0:
        return -code
    return _acknowledged(broker, conn, pkt, _SENT_1)


def handle_pubrec(broker, conn, pkt, buf):
    """QoS 2: send PUBREL; a reason code of 0x80 or more ends the delivery [4.3.3-4]."""
    code = _read(broker, pkt, buf, _OF_RECEIVER)
    if code < 0:
        return -code
    packet_id = pkt[_PACKET_ID]
    sent = broker.deliveries.find(broker.conns.session[conn], packet_id)
    if sent == _SENT_1 or sent == _RELEASED and code & 0x80:
        return _PROTOCOL_ERROR
    if code & 0x80:
        if sent:
            finish(broker.tables, packet_id - 1)
        return _OK
    if sent == _SENT_2:
        _acknowledged(broker, conn, pkt, _SENT_2)
    put_reason(broker, conn, _PUBREL, packet_id, 0 if sent else _NO_SUCH_ID)
    return _OK


def handle_pubrel(broker, conn, pkt, buf):
    """QoS 2: the sender releases the packet id."""
    if pkt[_FLAGS] != 2:
        return _MALFORMED_PACKET  # [3.6.1-1]
    code = _read(broker, pkt, buf, _OF_RELEASE)
    if code < 0:
        return -code
    sessions = broker.sessions
    session = broker.conns.session[conn]
    at = sessions.find_received(session, pkt[_PACKET_ID])
    if at >= 0:
        messages = sessions.id_msg
        if messages is not None and messages[at] != _NONE:
            broker.five.publisher = session
            publish_stored(broker, messages[at], session)  # if it raises, PUBREL is sent again
            broker.five.publisher = _NONE
        msg = sessions.remove_received(session, at)
        if msg != _NONE:
            unref(broker.tables, msg)
    put_reason(broker, conn, _PUBCOMP, pkt[_PACKET_ID], 0 if at >= 0 else _NO_SUCH_ID)
    return _OK


def handle_pubcomp(broker, conn, pkt, buf):
    """QoS 2: the delivery ends."""
    code = _read(broker, pkt, buf, _OF_RELEASE)
    if code < 0:
        return -code
    return _acknowledged(broker, conn, pkt, _RELEASED)


def _acknowledged(broker, conn, pkt, state):
    session = broker.conns.session[conn]
    if acked(broker.tables, session, pkt[_PACKET_ID], state) == _NONE:
        # A delivery with this id that waits for another kind of packet would wait for ever.
        sent = broker.deliveries.find(session, pkt[_PACKET_ID])
        return _PROTOCOL_ERROR if sent else _OK
    broker.sessions.progress[session] = broker.now
    return _OK


def handle_disconnect(broker, conn, pkt, buf):
    """The client leaves, with or without its will, and may change its session's expiry."""
    at = pkt[_BODY]
    end = pkt[_END]
    if at == end:
        return _LEFT
    code = buf[at]
    values = broker.five.values
    values[0] = 0
    if at + 1 < end:
        at = scan(buf, at + 1, end, _IN_DISCONNECT, values)
        if at != end:
            return -at if at < 0 else _MALFORMED_PACKET
    if code not in _OF_DISCONNECT:
        return _PROTOCOL_ERROR
    session = broker.conns.session[conn]
    if values[0] >> _SESSION_EXPIRY & 1:
        expiry = values[_SESSION_EXPIRY]
        if expiry and not broker.five.expiry[session]:
            return _PROTOCOL_ERROR  # [3.1.2-23 and 3.14.2.2.2]
        most = broker.settings.persistent_client_expiration
        broker.five.set_expiry(broker, session, min(expiry, most) if most else expiry)
    return _LEFT_WITH_WILL if code and broker.sessions.will[session] != _NONE else _LEFT
