# encode.py - what clients send, of all three versions, written from the standards and
# sharing nothing with the broker. `props` is the inside of a property section, and is left
# away where the level is below 5.


def number(value):
    return bytes((value >> 8, value & 255))


def number4(value):
    return number(value >> 16) + number(value & 0xFFFF)


def string(data):
    return number(len(data)) + data


def length(value):
    """A variable byte integer."""
    out = b""
    while value > 127:
        out += bytes((value & 127 | 128,))
        value >>= 7
    return out + bytes((value,))


def packet(first, body=b""):
    return bytes((first,)) + length(len(body)) + body


def section(level, props):
    return length(len(props)) + props if level == 5 else b""


def connect(level, client_id, clean, keep_alive, props=b"", will=None):
    """will: (topic, payload, QoS, retain, props)"""
    flags = 2 if clean else 0
    body = string(client_id)
    if will:
        topic, data, qos, retain, more = will
        flags |= 4 | qos << 3 | (32 if retain else 0)
        body += section(level, more) + string(topic) + string(data)
    head = string(b"MQIsdp" if level == 3 else b"MQTT") + bytes((level, flags))
    return packet(0x10, head + number(keep_alive) + section(level, props) + body)


def publish(level, topic, data, qos, packet_id, retain, dup, props=b""):
    first = 0x30 | (8 if dup else 0) | qos << 1 | (1 if retain else 0)
    head = string(topic) + (number(packet_id) if qos else b"")
    return packet(first, head + section(level, props) + data)


def ack(kind, packet_id, code=-1, props=None):
    """PUBACK, PUBREC, PUBREL or PUBCOMP; code and props are version 5's, and may be missing."""
    body = number(packet_id)
    if code >= 0:
        body += bytes((code,))
    if props is not None:
        body += section(5, props)
    return packet(kind << 4 | (2 if kind == 6 else 0), body)


def subscribe(level, packet_id, filters, props=b""):
    """filters: (filter, options)"""
    body = b"".join([string(text) + bytes((options,)) for text, options in filters])
    return packet(0x82, number(packet_id) + section(level, props) + body)


def unsubscribe(level, packet_id, filters):
    body = b"".join([string(text) for text in filters])
    return packet(0xA2, number(packet_id) + section(level, b"") + body)


def disconnect(code=-1, props=b""):
    if code < 0:
        return b"\xe0\0"
    return packet(0xE0, bytes((code,)) + (section(5, props) if props else b""))


PINGREQ = b"\xc0\0"
