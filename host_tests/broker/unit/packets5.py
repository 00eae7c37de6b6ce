# packets5.py - MQTT 5.0 packets as bytes; `properties` is what stands behind their length.
from packets import packet, text


def section(properties=b""):
    return packet(0, properties)[1:]


def connect(client_id, properties=b"", will=None, clean=True, expiry=0):
    """will: (topic, payload, QoS, properties)"""
    flags = 2 if clean else 0
    tail = b""
    if will:
        flags |= 4 | will[2] << 3
        tail = section(will[3]) + text(will[0]) + text(will[1])
    properties += b"\x11" + expiry.to_bytes(4, "big")
    head = text("MQTT") + bytes((5, flags)) + b"\0\0" + section(properties)
    return packet(0x10, head + text(client_id) + tail)


def publish(topic, payload, qos=0, packet_id=0, properties=b"", retain=False):
    body = text(topic)
    if qos:
        body += packet_id.to_bytes(2, "big")
    return packet(0x30 | qos << 1 | retain, body + section(properties) + payload)


def subscribe(packet_id, topic_filter, options, properties=b""):
    body = packet_id.to_bytes(2, "big") + section(properties)
    return packet(0x82, body + text(topic_filter) + bytes((options,)))


def read_publish(data):
    """(flags, topic, packet id, properties, payload) of a PUBLISH."""
    at = 2
    while data[at - 1] > 127:
        at += 1
    end = at + 2 + (data[at] << 8 | data[at + 1])
    topic = data[at + 2 : end].decode()
    packet_id = 0
    if data[0] & 6:
        packet_id = data[end] << 8 | data[end + 1]
        end += 2
    size = shift = 0
    while True:
        size |= (data[end] & 127) << shift
        shift += 7
        end += 1
        if data[end - 1] < 128:
            break
    return data[0] & 15, topic, packet_id, data[end : end + size], data[end + size :]
