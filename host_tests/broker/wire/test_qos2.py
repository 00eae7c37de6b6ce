"""QoS 2: each message is delivered exactly once, whichever packet is repeated or lost.

The broker passes a message on at its PUBLISH (method B of the standard) or at its PUBREL
(method A), as qos2_delivery says. All but the moment is the same.

A packet is lost with its connection: it was cut, or the client closed before it read it. A
repeated packet comes twice on one connection.
"""

import pytest

from . import codec
from .codec import Ack
from .scene import each_version, spec


def publish_unreleased(publisher, topic, packet_id, payload=b"x", dup=False):
    publisher.send(publisher.codec.publish(topic, payload, 2, packet_id, dup=dup))
    publisher.expect_accepted(packet_id, 2)


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


class Qos2Promises:
    """What holds with either method."""

    @each_version("4.3.3-2", "4.3.3-10 4.3.3-8")
    @pytest.mark.ours("mosquitto closes at the third")
    def test_a_repeated_publish_is_delivered_once(self, mqtt, topic):
        subscriber, publisher = mqtt.connect(), mqtt.connect()
        subscriber.subscribe(topic, qos=2)
        for i in range(4):
            publish_unreleased(publisher, topic, 9, dup=i > 0)
        publisher.release(9)
        subscriber.receive(topic, qos=2)
        subscriber.expect_silence()

    @spec("4.3.3-2")
    def test_after_pubcomp_the_id_means_a_new_message(self, mqtt, topic):
        subscriber, publisher = mqtt.connect(), mqtt.connect()
        subscriber.subscribe(topic, qos=2)
        for i in range(3):
            publish_unreleased(publisher, topic, 9, b"%d" % i)
            publisher.release(9)
            subscriber.receive(topic, b"%d" % i, 2)
        subscriber.expect_silence()

    @spec("4.3.3-2 4.6.0-6")
    def test_twenty_unreleased_messages_are_delivered_once_each_in_order(self, mqtt, topic):
        subscriber, publisher = mqtt.connect(), mqtt.connect()
        subscriber.subscribe(topic, qos=0)
        for repeat in (False, True):
            for i in range(1, 21):
                publish_unreleased(publisher, topic, i, b"%d" % i, dup=repeat)
        for i in range(1, 21):
            publisher.release(i)
        assert [m.payload for m in subscriber.publishes()] == [b"%d" % i for i in range(1, 21)]

    @spec("4.3.3-2 4.1.0-1")
    def test_ids_of_one_client_are_not_those_of_another(self, mqtt, topic):
        subscriber, one, two = mqtt.connect(), mqtt.connect(), mqtt.connect()
        subscriber.subscribe(topic, qos=0)
        publish_unreleased(one, topic, 9, b"one")
        publish_unreleased(two, topic, 9, b"two")
        two.release(9)
        one.release(9)
        assert {m.payload for m in subscriber.publishes()} == {b"one", b"two"}

    @spec("3.3.1-5 3.3.1-7")
    def test_a_retained_message_is_stored_once_it_is_complete(self, mqtt, topic):
        publisher = mqtt.connect()
        publisher.publish(topic, b"kept", 2, retain=True)
        subscriber = mqtt.reader(topic, qos=2)
        subscriber.receive(topic, b"kept", 2, retain=True)
        publisher.publish(topic, b"", 2, retain=True)
        subscriber.receive(topic, b"", 2)
        mqtt.reader(topic).expect_silence()

    @spec("4.3.3-2 4.4.0-1")
    @pytest.mark.parametrize("loss", LOSSES)
    def test_the_broker_as_receiver(self, mqtt, topic, loss):
        witness = mqtt.reader(topic, name="witness", qos=2)
        publisher = Publisher(mqtt, topic)
        lose_as_receiver(publisher, loss)
        witness.receive(topic, b"once", 2)
        publisher.returns()
        publisher.client.expect_silence()
        witness.expect_silence()

    @spec("4.3.3-1 4.4.0-1 3.3.1-1")
    @pytest.mark.parametrize("loss", LOSSES)
    def test_the_broker_as_sender(self, mqtt, topic, loss):
        subscriber = Subscriber(mqtt, topic)
        mqtt.connect().publish(topic, b"once", 2)
        lose_as_sender(subscriber, loss)
        assert subscriber.delivered == 1


@pytest.mark.config("qos2_delivery receive")
@pytest.mark.ours("mosquitto knows only the other method")
class TestDeliveryWhenReceived(Qos2Promises):
    def test_the_message_is_passed_on_at_its_publish(self, mqtt, topic):
        subscriber, publisher = mqtt.connect(), mqtt.connect()
        subscriber.subscribe(topic, qos=2)
        publish_unreleased(publisher, topic, 9)
        subscriber.receive(topic, qos=2)
        publisher.release(9)
        subscriber.expect_silence()


@pytest.mark.config("qos2_delivery release")
class TestDeliveryWhenReleased(Qos2Promises):
    def test_the_message_is_passed_on_at_its_pubrel(self, mqtt, topic):
        subscriber, publisher = mqtt.connect(), mqtt.connect()
        subscriber.subscribe(topic, qos=2)
        publish_unreleased(publisher, topic, 9)
        subscriber.expect_silence()
        publisher.release(9)
        subscriber.receive(topic, qos=2)

    def test_messages_wait_for_their_own_pubrel(self, mqtt, topic):
        subscriber, publisher = mqtt.connect(), mqtt.connect()
        subscriber.subscribe(topic, qos=0)
        for i in range(1, 4):
            publish_unreleased(publisher, topic, i, b"%d" % i)
        publisher.release(1)
        subscriber.receive(topic, b"1")
        subscriber.expect_silence()
        publisher.release(2)
        subscriber.receive(topic, b"2")
        publisher.release(3)
        subscriber.receive(topic, b"3")
