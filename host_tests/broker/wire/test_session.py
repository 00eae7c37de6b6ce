"""Sessions: what is stored for a client while it is away, and for how long."""

import pytest

from . import codec
from .codec import Ack, Connack
from .scene import EACH_VERSION


@pytest.mark.spec("MQTT-3.1.2-4", "MQTT-3.2.2-2", "MQTT-3.2.2-3", "MQTT-4.1.0-1")
def test_a_kept_session_is_present_at_the_next_connect(mqtt):
    first = mqtt.connect("keeper", clean=False)
    assert first.connack == Connack(False, 0)
    first.disconnect()
    assert mqtt.connect("keeper", clean=False).connack == Connack(True, 0)


@pytest.mark.spec("MQTT-3.1.2-6", "MQTT-3.1.4-3", "MQTT-3.2.2-1")
def test_a_clean_connect_finds_no_session_and_leaves_none(mqtt):
    mqtt.connect("guest", clean=False).disconnect()
    guest = mqtt.connect("guest", clean=True)
    assert guest.connack == Connack(False, 0)
    guest.disconnect()
    assert mqtt.connect("guest", clean=False).connack == Connack(False, 0)


@pytest.mark.spec("MQTT-3.1.2-6", "MQTT-3.1.4-3")
def test_a_clean_connect_loses_subscriptions_and_messages(mqtt, topic):
    subscriber = mqtt.connect("sub", clean=False)
    subscriber.subscribe(topic, qos=1)
    subscriber.disconnect()
    publisher = mqtt.connect("pub")
    publisher.publish(topic, b"queued", 1)
    subscriber = mqtt.connect("sub", clean=True)
    publisher.publish(topic, b"live", 1)
    subscriber.expect_silence()


@pytest.mark.spec("MQTT-3.1.2-4", "MQTT-3.1.2-5", "MQTT-4.1.0-1", "MQTT-4.5.0-1")
@pytest.mark.parametrize("end", ["disconnect", "drop"])
def test_subscriptions_and_messages_wait_for_the_client(mqtt, topic, end):
    subscriber = mqtt.connect("sub", clean=False)
    subscriber.subscribe(topic, qos=2)
    getattr(subscriber, end)()
    publisher = mqtt.connect("pub")
    publisher.publish(topic, b"one", 1)
    publisher.publish(topic, b"two", 2)
    subscriber = mqtt.connect("sub", clean=False)
    subscriber.receive(topic, b"one", 1)
    subscriber.receive(topic, b"two", 2)
    publisher.publish(topic, b"three", 1)
    subscriber.receive(topic, b"three", 1)
    subscriber.disconnect()
    mqtt.connect("sub", clean=False).expect_silence()


def test_qos_0_messages_do_not_wait(mqtt, topic):
    subscriber = mqtt.connect("sub", clean=False)
    subscriber.subscribe(topic, qos=2)
    subscriber.disconnect()
    mqtt.connect("pub").publish(topic, b"lost", 0)
    mqtt.connect("sub", clean=False).expect_silence()


@pytest.mark.config("queue_qos0_messages true")
def test_qos_0_messages_wait_with_queue_qos0_messages(mqtt, topic):
    subscriber = mqtt.connect("sub", clean=False)
    subscriber.subscribe(topic, qos=2)
    subscriber.disconnect()
    mqtt.connect("pub").publish(topic, b"kept", 0)
    mqtt.connect("sub", clean=False).receive(topic, b"kept", 0)


@pytest.mark.spec("MQTT-3.1.3-2")
def test_sessions_belong_to_client_ids(mqtt, topic):
    mine = mqtt.connect("mine", clean=False)
    mine.subscribe(topic, qos=1)
    mine.disconnect()
    mqtt.connect("pub").publish(topic, b"mine", 1)
    other = mqtt.connect("Mine", clean=False)
    assert other.connack == Connack(False, 0)
    other.expect_silence()
    mqtt.connect("mine", clean=False).receive(topic, b"mine", 1)


@pytest.mark.spec("MQTT-3.1.2-6")
def test_a_clean_session_ends_with_its_connection(mqtt, topic):
    subscriber = mqtt.connect("sub", clean=True)
    subscriber.subscribe(topic, qos=1)
    subscriber.drop()
    mqtt.connect("pub").publish(topic, b"late", 1)
    again = mqtt.connect("sub", clean=False)
    assert again.connack == Connack(False, 0)
    again.expect_silence()


@EACH_VERSION
@pytest.mark.spec("MQTT-4.1.0-1", "MQTT-4.3.3-2")
@pytest.mark.spec("MQTT-4.3.3-10", "MQTT-4.3.3-11", "MQTT-4.1.0-1", of="5.0")
def test_received_qos_2_ids_are_part_of_the_session(mqtt, topic):
    subscriber = mqtt.connect("sub")
    subscriber.subscribe(topic, qos=2)
    for end in ("disconnect", "drop", "disconnect"):
        publisher = mqtt.connect("pub", clean=False)
        publisher.send(
            mqtt.codec.publish(topic, b"once", 2, 7, dup=publisher.connack.session_present)
        )
        publisher.expect_accepted(7, 2)
        getattr(publisher, end)()
    mqtt.connect("pub", clean=False).release(7)
    subscriber.receive(topic, b"once", 2)
    subscriber.expect_silence()


@pytest.mark.spec("MQTT-3.1.2-6")
def test_received_qos_2_ids_are_forgotten_by_a_clean_connect(mqtt, topic):
    subscriber = mqtt.connect("sub")
    subscriber.subscribe(topic, qos=2)
    publisher = mqtt.connect("pub", clean=False)
    publisher.send(codec.publish(topic, b"unreleased", 2, 7))
    publisher.expect(Ack(codec.PUBREC, 7))
    publisher.disconnect()
    publisher = mqtt.connect("pub", clean=True)
    publisher.send(codec.publish(topic, b"new", 2, 7))
    publisher.expect(Ack(codec.PUBREC, 7))
    publisher.release(7)
    # With qos2_delivery receive the first was delivered, too.
    assert subscriber.receive_all()[-1].payload == b"new"


@pytest.mark.spec("MQTT-3.1.4-2")
def test_a_second_connection_takes_the_client_id_over(mqtt, topic):
    old = mqtt.connect("twin")
    old.subscribe(f"{topic}/old")
    new = mqtt.connect("twin")
    old.expect_closed()
    new.subscribe(f"{topic}/new")
    publisher = mqtt.connect("pub")
    publisher.publish(f"{topic}/old")
    publisher.publish(f"{topic}/new")
    new.receive(f"{topic}/new")
    new.expect_silence()


@pytest.mark.spec("MQTT-3.1.4-2", "MQTT-3.1.2-4", "MQTT-4.1.0-2")
def test_a_kept_session_that_is_taken_over_goes_on(mqtt, topic):
    old = mqtt.connect("twin", clean=False)
    old.subscribe(topic, qos=1)
    mqtt.connect("pub").publish(topic, b"unacknowledged", 1)
    old.expect_publish(topic, b"unacknowledged", 1)
    new = mqtt.connect("twin", clean=False)
    old.expect_closed()
    assert new.connack == Connack(True, 0)
    new.receive(topic, b"unacknowledged", 1, dup=True)


@pytest.mark.spec("MQTT-4.1.0-2")
def test_the_end_of_the_old_connection_does_not_end_the_new_session(mqtt, topic):
    old = mqtt.connect("twin", clean=True)
    new = mqtt.connect("twin", clean=False)
    new.subscribe(topic, qos=1)
    old.expect_closed()
    new.disconnect()
    mqtt.connect("pub").publish(topic, b"kept", 1)
    mqtt.connect("twin", clean=False).receive(topic, b"kept", 1)
