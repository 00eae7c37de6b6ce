# packets5.py - MQTT 5.0 packets as bytes; `properties` is what stands behind their length.
from slotmq_tools import codec


def connect(client_id, properties=b"", will=None, clean=True, expiry=0):
    """will: (topic, payload, QoS, properties)"""
    properties += b"\x11" + codec.number4(expiry)
    of_will = {"will": will[:3], "will_properties": will[3]} if will else {}
    return codec.connect(client_id, clean, level=5, properties=properties, **of_will)


def publish(topic, payload, qos=0, packet_id=0, properties=b"", retain=False):
    return codec.publish(topic, payload, qos, packet_id, retain, properties=properties)


def subscribe(packet_id, topic_filter, options, properties=b""):
    return codec.subscribe(packet_id, (topic_filter, options), properties=properties)


def read_publish(data):
    """(flags, topic, packet id, properties, payload) of a PUBLISH."""
    found = codec.take(data, 5)
    start = codec.extent(data)[0]
    at = start + 2 + len(found.topic) + (2 if found.qos else 0)
    size, at = codec.varint(data, at)
    return data[0] & 15, found.topic.decode(), found.packet_id, data[at : at + size], found.payload
