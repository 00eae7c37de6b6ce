"""Each packet of the QoS 2 dialogue is lost or repeated: the message is delivered exactly once.

A packet is lost with its connection: it was cut, or the client closed before it read it. A
repeated packet comes twice on one connection.
"""

import pytest

from . import codec
from .codec import Ack

LOSSES = [
    "PUBLISH lost",
    "PUBREC lost",
    "PUBLISH repeated",
    "PUBREL lost",
    "PUBREL repeated",
    "PUBCOMP lost",
]


class Publisher:
    """A QoS 2 publisher with a persistent session; slotmq is the receiver."""

    def __init__(self, mqtt, topic):
        self.mqtt, self.topic = mqtt, topic
        self.client = mqtt.connect("pub", clean=False)

    def returns(self):
        self.client.drop()
        self.client = self.mqtt.connect("pub", clean=False)

    def publishes(self, dup=False, cut=None):
        self.client.send(codec.publish(self.topic, b"once", 2, 77, dup=dup)[:cut])

    def releases(self, cut=None):
        self.client.send(codec.ack(codec.PUBREL, 77)[:cut])

    def hears(self, kind):
        self.client.expect(Ack(kind, 77))


def lose_as_receiver(publisher, loss):
    """The dialogue with this one thing wrong in it, to its end."""
    if loss == "PUBLISH lost":
        publisher.publishes(cut=9)
        publisher.returns()
    publisher.publishes(dup=loss == "PUBLISH lost")
    if loss == "PUBLISH repeated":
        publisher.hears(codec.PUBREC)
        publisher.publishes(dup=True)
    if loss == "PUBREC lost":
        publisher.returns()
        publisher.publishes(dup=True)
    publisher.hears(codec.PUBREC)
    if loss == "PUBREL lost":
        publisher.releases(cut=3)
        publisher.returns()
    publisher.releases()
    if loss == "PUBCOMP lost":
        publisher.returns()
        publisher.releases()
    publisher.hears(codec.PUBCOMP)
    if loss == "PUBREL repeated":
        publisher.releases()
        publisher.hears(codec.PUBCOMP)


class Subscriber:
    """A QoS 2 subscriber with a persistent session; slotmq is the sender.

    It is a receiver by the standard: it delivers a packet id once until PUBREL, and
    acknowledges every packet.
    """

    def __init__(self, mqtt, topic):
        self.mqtt, self.topic = mqtt, topic
        self.client = mqtt.connect("sub", clean=False)
        self.client.subscribe(topic, qos=2)
        self.held, self.delivered = set(), 0

    def returns(self):
        self.client.drop()
        self.client = self.mqtt.connect("sub", clean=False)

    def hears_publish(self, dup=False):
        message = self.client.expect_publish(self.topic, b"once", 2, dup=dup)
        self.delivered += message.packet_id not in self.held
        self.held.add(message.packet_id)
        return message.packet_id

    def hears_pubrel(self, packet_id):
        self.client.expect(Ack(codec.PUBREL, packet_id))
        self.held.discard(packet_id)

    def says(self, kind, packet_id):
        self.client.send(codec.ack(kind, packet_id))


def lose_as_sender(subscriber, loss):
    """The dialogue with this one thing wrong in it, to its end."""
    if loss == "PUBLISH lost":
        subscriber.returns()
    packet_id = subscriber.hears_publish(dup=loss == "PUBLISH lost")
    if loss in ("PUBREC lost", "PUBLISH repeated"):
        if loss == "PUBREC lost":
            subscriber.client.send(codec.ack(codec.PUBREC, packet_id)[:3])
        subscriber.returns()
        assert subscriber.hears_publish(dup=True) == packet_id
    subscriber.says(codec.PUBREC, packet_id)
    if loss == "PUBREL lost":
        subscriber.returns()
    subscriber.hears_pubrel(packet_id)
    if loss in ("PUBREL repeated", "PUBCOMP lost"):
        if loss == "PUBCOMP lost":
            subscriber.client.send(codec.ack(codec.PUBCOMP, packet_id)[:3])
        subscriber.returns()
        subscriber.hears_pubrel(packet_id)
    subscriber.says(codec.PUBCOMP, packet_id)
    subscriber.returns()
    subscriber.client.expect_silence()


class Losses:
    @pytest.mark.spec("MQTT-4.3.3-2", "MQTT-4.4.0-1")
    @pytest.mark.parametrize("loss", LOSSES)
    def test_the_broker_as_receiver(self, mqtt, topic, loss):
        witness = mqtt.reader(topic, name="witness", qos=2)
        publisher = Publisher(mqtt, topic)
        lose_as_receiver(publisher, loss)
        witness.receive(topic, b"once", 2)
        publisher.returns()
        publisher.client.expect_silence()
        witness.expect_silence()

    @pytest.mark.spec("MQTT-4.3.3-1", "MQTT-4.4.0-1", "MQTT-3.3.1-1")
    @pytest.mark.parametrize("loss", LOSSES)
    def test_the_broker_as_sender(self, mqtt, topic, loss):
        subscriber = Subscriber(mqtt, topic)
        mqtt.connect().publish(topic, b"once", 2)
        lose_as_sender(subscriber, loss)
        assert subscriber.delivered == 1


@pytest.mark.config("qos2_delivery receive")
@pytest.mark.ours("mosquitto knows only the other method")
class TestMethodB(Losses):
    """The message is passed on at its PUBLISH; its id is kept until PUBREL."""


@pytest.mark.config("qos2_delivery release")
class TestMethodA(Losses):
    """The message waits for PUBREL."""
