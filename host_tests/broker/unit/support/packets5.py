# packets5.py - MQTT 5.0 packets as bytes; `properties` is what stands behind their length.
import packets


def connect(client_id, properties=b"", will=None, clean=True, expiry=0):
    """will: (topic, payload, QoS, properties)"""
    properties += b"\x11" + expiry.to_bytes(4, "big")
    of_will = {"will": will[:3], "will_properties": will[3]} if will else {}
    return packets.connect(client_id, clean, level=5, properties=properties, **of_will)


def publish(topic, payload, qos=0, packet_id=0, properties=b"", retain=False):
    return packets.publish(topic, payload, qos, packet_id, retain, properties=properties)


def subscribe(packet_id, topic_filter, options, properties=b""):
    return packets.subscribe(packet_id, topic_filter, options, properties)


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
