# handshake.py - the packets that open a bridge's connection: CONNECT and CONNACK, and SUBSCRIBE
# and UNSUBSCRIBE with their answers; and which version of MQTT it speaks. Both sides of PUBLISH
# and its acknowledgements look alike, so nothing else differs from a client. Loaded on demand;
# owns nothing; `one` is the Bridge; allocates.
from slotmq.constants import (ACCEPTED, BLOCKED, BODY, CLEAN, CONNACK_TYPE, CONNECTING,
    DISCONNECT_TYPE, END, FAILURE, LOST, MALFORMED, NOTICE, NO_QOS, NO_RETAIN, OK, PASSWORD,
    PROTOCOL, REFUSED, START, SUBACK, SUBACK_TYPE, TIMED_OUT, TOTAL, TYPE, UNSUBACK_TYPE,
    USER_NAME, WARNING, WILL)
from slotmq.embed.packets import field, packet_of

_SUBSCRIBE_BYTE = 0x82
# Flags of CONNECT
_STATE_WILL = 4 | 8 | 32  # with QoS 1, retained
_PRIVATE = 0x80  # in the protocol level: this client is a bridge
# Codes of CONNACK, and of SUBACK
_BAD_LEVEL = 1
_BAD_VERSION = 0x84
_PACKET_LIMIT = 0x27  # a property of CONNACK
_FIRST_ID = 65500  # of SUBSCRIBE: those of deliveries are lower
_ANSWER = 200  # tenths of a second that SUBACKs may take
_EARLY = 20  # tenths of a second from the first packet of TCP to the end


def speak(one, is_5):
    """What the next CONNECT says: 5.0, or an older version and that this is a bridge."""
    one.is_5 = is_5
    one.is_private = one.options.try_private and not is_5
    five = one.module("bridge.version5") if is_5 else None
    one.requests = one.module("bridge.options").requests(one.options, five)


def _speak_older(one):
    # The version was refused: at once again with 3.1.1, then as an ordinary client; False: that
    # was it. The attempt after a pause or a loss begins anew.
    if one.is_5:
        one.log(WARNING, "the other broker has no MQTT 5.0: 3.1.1")
        speak(one, False)
    elif one.is_private:
        one.is_private = False
    else:
        return False
    one.is_soon = True
    return True


def connect_packet(one):
    """The CONNECT with which it asks to be let in."""
    options = one.options
    flags = CLEAN if options.cleansession else 0
    body = field(one.remote_id)
    if options.notifications and not options.notifications_local_only:
        flags |= WILL if one.is_simple else _STATE_WILL
        body += b"\0" if one.is_5 else b""
        body += field(one.state_topic.encode()) + field(b"0")
    if options.remote_username is not None:
        flags |= USER_NAME
        body += field(options.remote_username.encode())
        if options.remote_password is not None:
            flags |= PASSWORD
            body += field(options.remote_password.encode())
    is_old = options.bridge_protocol_version == "mqttv31"
    level = (3 if is_old else 5 if one.is_5 else 4) | (_PRIVATE if one.is_private else 0)
    head = field(b"MQIsdp" if is_old else b"MQTT") + bytes((level, flags))
    head += options.keepalive_interval.to_bytes(2, "big")
    if one.is_5:
        five = one.module("bridge.version5")
        head += five.properties(options, one.broker.limits, one.broker.pkt)
    return packet_of(0x10, head + body)


def ended(one, reason, number):
    """Its connection ends: say why. number: the error of the socket, or 0."""
    broker = one.broker
    if broker.log_mask & (WARNING | NOTICE):
        one.module("status.log_bridges").say_ended(one, reason, number)
    # Old brokers close at once where CONNECT has a version that they do not know; one end may be
    # that of the network. A proxy without a broker often closes later.
    conns = broker.conns
    has_asked = one.state == CONNECTING and conns.out[one.conn] != BLOCKED
    at_once = broker.now - conns.opened[one.conn] < _EARLY
    if has_asked and at_once and reason == LOST and one.wants_5:
        one.closed += 1
        if one.closed > 1:
            _speak_older(one)


def handle(one, pkt, buf):
    """What only servers send; a result."""
    kind = pkt[TYPE]
    if kind == CONNACK_TYPE:
        return _connack(one, pkt, buf)
    if kind in (SUBACK_TYPE, UNSUBACK_TYPE):
        return _suback(one, pkt, buf)
    if kind == DISCONNECT_TYPE:
        return one.module("bridge.version5").left(one, pkt, buf)
    return PROTOCOL  # only clients may send it


def _connack(one, pkt, buf):
    at = pkt[BODY]
    size = pkt[TOTAL]
    one.why = "malformed CONNACK"
    if size < 4 or size > 4 and not one.is_5 or not one.broker.conns.is_empty(one.conn):
        return MALFORMED
    code = buf[at + 1]
    one.remote = {}
    if one.is_5:
        one.closed = 0
    if size > 4:
        try:
            one.remote, at_end = one.module("bridge.version5").read(buf, at + 2, pkt[END])
        except ValueError:
            return MALFORMED
        if at_end != pkt[END]:
            return MALFORMED
    elif one.is_5 and not code:
        return MALFORMED
    one.why = None
    if code in (NO_RETAIN, NO_QOS) and not one.is_simple:
        # It is the will that it does not take: at once again, with a simple one.
        one.is_simple = one.is_soon = True
    elif code and not (code in (_BAD_LEVEL, _BAD_VERSION) and _speak_older(one)):
        if code & 0x80:
            text = one.module("bridge.version5").reason(code, one.remote)
        else:
            text = one.module("status.log_bridges").return_code(one, code)
        one.log(WARNING, "refused by %s (%s)" % (one.where(), text))
    if code:
        return REFUSED
    present = buf[at] & 1
    if one.options.bridge_protocol_version == "mqttv31" and not one.options.cleansession:
        present = 1  # 3.1 does not say it: what it may have kept counts as kept
    return ACCEPTED if one.up(present) else REFUSED


def ask(one):
    """SUBSCRIBE for what comes in; say that it is up as soon as all is answered. False: the
    connection has ended, since an answer is missing."""
    broker = one.broker
    while one.asked < len(one.requests):
        first, name, tail = one.requests[one.asked]
        asks = one.is_5 and first == _SUBSCRIBE_BYTE
        why = one.module("bridge.version5").may_ask(one.remote, name) if asks else None
        head = (_FIRST_ID + one.asked).to_bytes(2, "big")
        if one.is_5:
            head += b"\0"  # no properties
        packet = packet_of(first, head + field(name) + tail)
        if _is_too_large(one, packet):
            why = "packets of %d bytes" % len(packet)
        if why:
            one.log(WARNING, "the other broker has no %s: %r" % (why, name.decode()))
            one.answered += 1
        elif one.put(packet):
            one.suback_due = broker.now + _ANSWER
        else:
            return True
        one.asked += 1
    if one.answered < one.asked and broker.now >= one.suback_due:
        one.why = "no SUBACK or UNSUBACK in %d s" % (_ANSWER // 10)
        broker.end(one.conn, TIMED_OUT)
        return False
    if one.answered == one.asked:
        one.is_told = True
        one.tell(b"1")
        one.put(state_of(one, b"1"))
        one.log(NOTICE, "up, %s" % one.where())
    return True


def _suback(one, pkt, buf):
    at = pkt[BODY]
    end = pkt[END]
    first = buf[pkt[START]]
    if one.is_5:
        try:
            if one.module("bridge.version5").read(buf, at + 2, end)[1] != end - 1:
                return MALFORMED
        except ValueError:
            return MALFORMED
    elif end - at != (3 if first == SUBACK else 2):
        return MALFORMED
    index = (buf[at] << 8 | buf[at + 1]) - _FIRST_ID
    if not 0 <= index < one.asked:
        return PROTOCOL
    one.answered += 1
    one.wake = 0
    if first == SUBACK and buf[end - 1] >= FAILURE:
        text = one.requests[index][1].decode()
        why = " (%s)" % one.module("bridge.version5").reason(buf[end - 1]) if one.is_5 else ""
        one.log(WARNING, "the other broker does not grant %r%s" % (text, why))
    return OK


def _is_too_large(one, packet):
    return len(packet) > one.remote.get(_PACKET_LIMIT, len(packet))


def state_of(one, text):
    """The PUBLISH that says its state there, or b""."""
    options = one.options
    if not options.notifications or options.notifications_local_only:
        return b""
    topic = field(one.state_topic.encode())
    packet = packet_of(0x31 & one.mask(), topic + (b"\0" if one.is_5 else b"") + text)
    return b"" if _is_too_large(one, packet) else packet
