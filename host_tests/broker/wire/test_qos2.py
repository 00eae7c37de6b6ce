"""QoS 2 from a publisher: delivered exactly once, whichever packet is repeated or lost.

The broker passes a message on at its PUBLISH (method B of the standard) or at its PUBREL
(method A), as qos2_delivery says. All but the moment is the same.
"""

import pytest

from .scene import EACH_VERSION

RECEIVE = pytest.mark.config("qos2_delivery receive")
RELEASE = pytest.mark.config("qos2_delivery release")
MOSQUITTO_RELEASES = pytest.mark.ours("mosquitto knows only the other method")


def publish_unreleased(publisher, topic, packet_id, payload=b"x", dup=False):
    publisher.send(publisher.codec.publish(topic, payload, 2, packet_id, dup=dup))
    publisher.expect_accepted(packet_id, 2)


class Qos2Promises:
    """What holds with either method."""

    @EACH_VERSION
    @pytest.mark.ours("mosquitto closes at the third")
    @pytest.mark.spec("MQTT-4.3.3-2")
    @pytest.mark.spec("MQTT-4.3.3-10", "MQTT-4.3.3-8", of="5.0")
    def test_a_repeated_publish_is_delivered_once(self, mqtt, topic):
        subscriber, publisher = mqtt.connect(), mqtt.connect()
        subscriber.subscribe(topic, qos=2)
        for i in range(4):
            publish_unreleased(publisher, topic, 9, dup=i > 0)
        publisher.release(9)
        subscriber.receive(topic, qos=2)
        subscriber.expect_silence()

    @pytest.mark.spec("MQTT-4.3.3-2")
    def test_a_repeated_pubrel_is_completed_again_and_delivers_nothing(self, mqtt, topic):
        subscriber, publisher = mqtt.connect(), mqtt.connect()
        subscriber.subscribe(topic, qos=2)
        publish_unreleased(publisher, topic, 9)
        for _ in range(3):
            publisher.release(9)
        subscriber.receive(topic, qos=2)
        subscriber.expect_silence()

    @pytest.mark.spec("MQTT-4.3.3-2")
    def test_after_pubcomp_the_id_means_a_new_message(self, mqtt, topic):
        subscriber, publisher = mqtt.connect(), mqtt.connect()
        subscriber.subscribe(topic, qos=2)
        for i in range(3):
            publish_unreleased(publisher, topic, 9, b"%d" % i)
            publisher.release(9)
            subscriber.receive(topic, b"%d" % i, 2)
        subscriber.expect_silence()

    @pytest.mark.spec("MQTT-4.3.3-2", "MQTT-4.6.0-6")
    def test_twenty_unreleased_messages_are_delivered_once_each_in_order(self, mqtt, topic):
        subscriber, publisher = mqtt.connect(), mqtt.connect()
        subscriber.subscribe(topic, qos=0)
        for repeat in (False, True):
            for i in range(1, 21):
                publish_unreleased(publisher, topic, i, b"%d" % i, dup=repeat)
        for i in range(1, 21):
            publisher.release(i)
        assert [m.payload for m in subscriber.publishes()] == [b"%d" % i for i in range(1, 21)]

    @pytest.mark.spec("MQTT-4.3.3-2", "MQTT-4.1.0-1")
    def test_ids_of_one_client_are_not_those_of_another(self, mqtt, topic):
        subscriber, one, two = mqtt.connect(), mqtt.connect(), mqtt.connect()
        subscriber.subscribe(topic, qos=0)
        publish_unreleased(one, topic, 9, b"one")
        publish_unreleased(two, topic, 9, b"two")
        two.release(9)
        one.release(9)
        assert {m.payload for m in subscriber.publishes()} == {b"one", b"two"}

    @pytest.mark.spec("MQTT-3.3.1-5", "MQTT-3.3.1-7")
    def test_a_retained_message_is_stored_once_it_is_complete(self, mqtt, topic):
        publisher = mqtt.connect()
        publisher.publish(topic, b"kept", 2, retain=True)
        subscriber = mqtt.reader(topic, qos=2)
        subscriber.receive(topic, b"kept", 2, retain=True)
        publisher.publish(topic, b"", 2, retain=True)
        subscriber.receive(topic, b"", 2)
        mqtt.reader(topic).expect_silence()


@RECEIVE
@MOSQUITTO_RELEASES
class TestDeliveryWhenReceived(Qos2Promises):
    def test_the_message_is_passed_on_at_its_publish(self, mqtt, topic):
        subscriber, publisher = mqtt.connect(), mqtt.connect()
        subscriber.subscribe(topic, qos=2)
        publish_unreleased(publisher, topic, 9)
        subscriber.receive(topic, qos=2)
        publisher.release(9)
        subscriber.expect_silence()


@RELEASE
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
