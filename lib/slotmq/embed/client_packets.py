# client_packets.py - makes the packets of a client of the program (MQTT 3.1.1), and checks its
# arguments: an invalid one raises ValueError before anything has changed, whereas in a packet it
# would end the connection. Owns nothing. Allocates.
from slotmq.constants import CLEAN, PACKET_MAX, RETAIN_FLAG, USER_NAME, WILL
from slotmq.embed.packets import field, packet_of
from slotmq.embed.publishing import checked, encoded
from slotmq.fast import filter_ok, utf8_ok


def filter_of(broker, topic_filter, callback, qos):
    """The filter as bytes; ValueError: filter, callback or QoS is not valid."""
    name = encoded(topic_filter)
    limits = broker.limits
    n = len(name)
    levels = filter_ok(name, 0, n)
    if not levels or not utf8_ok(name, 0, n, 0):
        raise ValueError("topic filter: not empty; + and # are whole levels, # is the last")
    if n > limits.topic_bytes or levels > limits.levels:
        most = limits.topic_bytes, limits.levels
        raise ValueError("topic filter: at most %d bytes in %d levels" % most)
    if qos not in (0, 1, 2):
        raise ValueError("qos: 0, 1 or 2")
    if not callable(callback):
        raise ValueError("callback: a function")
    return name


def connect_of(broker, client_id, clean, will, user):
    """CONNECT; ValueError: client id, will or user name is not valid."""
    name = encoded(client_id)
    most = broker.limits.client_id_bytes
    if len(name) > most or not utf8_ok(name, 0, len(name), 0):
        raise ValueError("client id: at most %d bytes of UTF-8" % most)
    if not clean and not name:
        raise ValueError("client id: empty needs clean")
    flags = CLEAN if clean else 0
    body = field(name)
    if will:
        if not isinstance(will, (tuple, list)) or len(will) != 4:
            raise ValueError("will: (topic, payload, QoS, RETAIN)")
        _, _, qos, retain = will
        topic, payload = checked(broker, *will)
        if len(payload) > 65535:
            raise ValueError("payload: at most 65535 bytes of a will")
        flags |= WILL | qos << 3 | (RETAIN_FLAG if retain else 0)
        body += field(topic) + field(payload)
    if user:
        if len(user) > most or not utf8_ok(user, 0, len(user), 0):
            raise ValueError("user name: at most %d bytes of UTF-8" % most)
        flags |= USER_NAME
        body += field(user)
    packet = packet_of(0x10, b"\0\4MQTT\4" + bytes((flags, 0, 0)) + body)
    if len(packet) > broker.pkt[PACKET_MAX]:
        raise ValueError("larger than max_packet")
    return packet
