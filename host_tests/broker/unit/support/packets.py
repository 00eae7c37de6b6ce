# packets.py - MQTT packets as bytes for unit tests: the tools' codec, on both runtimes, and a
# short form of what the tests say often. 5.0 is where `properties` are given, see packets5.py.
from slotmq_tools import codec
from slotmq_tools.codec import connect, length, number, packet, publish, section
from slotmq_tools.codec import string as text

__all__ = "connect", "length", "number", "packet", "publish", "section", "text"

PINGREQ = codec.PING
PINGRESP = codec.PONG
DISCONNECT = codec.disconnect()
PUBACK, PUBREC, PUBREL, PUBCOMP = 0x40, 0x50, 0x62, 0x70


def subscribe(packet_id, topic_filter, options, properties=None):
    """options: the QoS, with 5.0 and what is `|`ed to it"""
    return codec.subscribe(packet_id, (topic_filter, options), properties=properties)


def ack(first, packet_id):
    return packet(first, number(packet_id))


def split(data):
    """The whole packets that data begins with, and how many bytes they are."""
    data = bytes(data)
    found = []
    at = 0
    while extent := codec.extent(data, at):
        found.append(data[at : extent[1]])
        at = extent[1]
    return found, at


def read_publish(data):
    """(topic, payload, QoS, packet id) of a PUBLISH; in 5.0 its payload begins with properties."""
    start, end = codec.extent(data)
    at = start + 2 + codec.two(data, start)
    qos = data[0] >> 1 & 3
    topic = bytes(data[start + 2 : at])
    if not qos:
        return topic, bytes(data[at:end]), 0, 0
    return topic, bytes(data[at + 2 : end]), qos, codec.two(data, at)
