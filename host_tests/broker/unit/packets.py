# packets.py - MQTT 3.1.1 packets as bytes, for tests that run on both runtimes.
#
# Written from the standard, with nothing of the broker's.

PINGREQ = b"\xc0\0"
PINGRESP = b"\xd0\0"
DISCONNECT = b"\xe0\0"
PUBACK, PUBREC, PUBREL, PUBCOMP = 0x40, 0x50, 0x62, 0x70


def text(value):
    data = value if isinstance(value, bytes) else value.encode()
    return len(data).to_bytes(2, "big") + data


def packet(first, body):
    head = bytearray((first,))
    size = len(body)
    while size > 127:
        head.append(size & 127 | 128)
        size >>= 7
    head.append(size)
    return bytes(head) + body


def connect(client_id, clean=True, will=None, keep_alive=0):
    """will: (topic, payload, QoS)"""
    flags = 2 if clean else 0
    tail = b""
    if will:
        flags |= 4 | will[2] << 3
        tail = text(will[0]) + text(will[1])
    head = text("MQTT") + bytes((4, flags)) + keep_alive.to_bytes(2, "big")
    return packet(0x10, head + text(client_id) + tail)


def publish(topic, payload, qos=0, packet_id=0, retain=False, dup=False):
    body = text(topic)
    if qos:
        body += packet_id.to_bytes(2, "big")
    return packet(0x30 | dup << 3 | qos << 1 | retain, body + payload)


def subscribe(packet_id, topic_filter, qos):
    return packet(0x82, packet_id.to_bytes(2, "big") + text(topic_filter) + bytes((qos,)))


def ack(first, packet_id):
    return packet(first, packet_id.to_bytes(2, "big"))


def split(data):
    """The whole packets that data begins with, and how many bytes they are."""
    found = []
    at = 0
    while True:
        size = _size(data, at)
        if not size or at + size > len(data):
            return found, at
        found.append(bytes(data[at : at + size]))
        at += size


def _size(data, at):
    length = 0
    for i in range(4):
        if at + 1 + i >= len(data):
            return 0
        byte = data[at + 1 + i]
        length |= (byte & 127) << 7 * i
        if byte < 128:
            return 2 + i + length
    raise ValueError("no remaining length")


def read_publish(data):
    """(topic, payload, QoS, packet id) of a PUBLISH."""
    at = 2
    while data[at - 1] > 127:
        at += 1
    end = at + 2 + (data[at] << 8 | data[at + 1])
    topic = bytes(data[at + 2 : end])
    qos = data[0] >> 1 & 3
    if not qos:
        return topic, bytes(data[end:]), 0, 0
    return topic, bytes(data[end + 2 :]), qos, data[end] << 8 | data[end + 1]
