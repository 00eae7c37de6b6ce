"""PUBLISH in MQTT 5.0: ids, flags, order, retained messages, and what is sent again."""

import pytest

from . import codec
from .codec import PUBACK, PUBCOMP, PUBREC, PUBREL, Ack

QOS = [0, 1, 2]


def back(mqtt5, **options):
    client = mqtt5.connect("sub", clean=False, session_expiry=60, **options)
    assert client.connack.session_present
    return client


@pytest.fixture
def subscriber(mqtt5, topic):
    client = mqtt5.connect("sub", session_expiry=60)
    client.subscribe(f"{topic}/#", qos=2)
    return client


@pytest.fixture
def publisher(mqtt5):
    return mqtt5.connect("pub")


@pytest.mark.spec("MQTT-2.2.1-5", "MQTT-3.3.4-1", "MQTT-4.3.2-4", "MQTT-4.3.3-8", of="5.0")
@pytest.mark.parametrize("packet_id", [1, 127, 128, 256, 32768, 65535])
def test_acknowledgements_carry_the_packet_id(publisher, topic, packet_id):
    publisher.send(codec.publish(topic, b"x", 1, packet_id))
    publisher.expect_accepted(PUBACK, packet_id)
    publisher.send(codec.publish(topic, b"x", 2, packet_id))
    publisher.expect_accepted(PUBREC, packet_id)
    publisher.send(codec.ack(PUBREL, packet_id))
    publisher.expect(Ack(PUBCOMP, packet_id))
    publisher.expect_silence()


@pytest.mark.spec("MQTT-2.2.1-2", "MQTT-4.3.1-1", "MQTT-3.3.1-2", of="5.0")
def test_qos_0_has_no_packet_id_and_no_answer(subscriber, publisher, topic):
    publisher.send(codec.publish(topic, b"\x00\x01payload"))
    publisher.expect_silence()
    subscriber.receive(topic, b"\x00\x01payload")


@pytest.mark.spec("MQTT-3.3.1-3", "MQTT-4.3.2-2", "MQTT-4.3.3-2", of="5.0")
@pytest.mark.parametrize("qos", [1, 2])
def test_the_publishers_dup_is_not_passed_on(subscriber, publisher, topic, qos):
    publisher.send(codec.publish(topic, b"x", qos, 5, dup=True))
    publisher.expect_accepted(PUBACK if qos == 1 else PUBREC, 5)
    if qos == 2:
        publisher.release(5)
    subscriber.receive(topic, b"x", qos, dup=False)


@pytest.mark.spec("MQTT-2.2.1-4", "MQTT-4.3.2-1", "MQTT-4.3.3-1", of="5.0")
def test_packet_ids_in_flight_are_all_different(subscriber, publisher, topic):
    for i in range(16):
        publisher.publish(topic, b"%d" % i, 1 + i % 2)
    ids = [message.packet_id for message in subscriber.publishes()]
    assert len(set(ids)) == 16


@pytest.mark.spec("MQTT-4.6.0-5", "MQTT-4.6.0-6", of="5.0")
@pytest.mark.parametrize("qos", QOS)
def test_messages_arrive_in_the_order_they_were_sent(subscriber, publisher, topic, qos):
    payloads = [b"%d" % i for i in range(15)]
    sent = [codec.publish(topic, payload, qos, i) for i, payload in enumerate(payloads, 1)]
    publisher.send(b"".join(sent))
    for i in range(1, 16) if qos else ():
        publisher.expect_accepted(PUBACK if qos == 1 else PUBREC, i)
    for i in range(1, 16) if qos == 2 else ():
        publisher.release(i)
    publisher.ping()
    assert [message.payload for message in subscriber.receive_all()] == payloads


@pytest.mark.spec("MQTT-4.6.0-4", of="5.0")
def test_pubrels_follow_in_the_order_of_the_pubrecs(subscriber, publisher, topic):
    for i in range(5):
        publisher.publish(topic, b"%d" % i, 2)
    ids = [message.packet_id for message in subscriber.publishes()]
    order = [ids[2], ids[0], ids[4], ids[1], ids[3]]
    for packet_id in order:
        subscriber.send(codec.ack(PUBREC, packet_id))
    assert [subscriber.next() for _ in ids] == [Ack(PUBREL, i) for i in order]


@pytest.mark.spec(
    "MQTT-3.3.1-1", "MQTT-4.4.0-1", "MQTT-4.6.0-1", "MQTT-4.3.2-3", "MQTT-4.3.3-3", of="5.0"
)
@pytest.mark.parametrize("qos", [1, 2])
def test_what_is_open_comes_again_in_its_order(mqtt5, subscriber, publisher, topic, qos):
    for i in range(5):
        publisher.publish(topic, b"%d" % i, qos)
    first = subscriber.publishes()
    subscriber.acknowledge(first[2])
    subscriber.drop()
    publisher.publish(topic, b"5", qos)
    subscriber = back(mqtt5)
    again = subscriber.receive_all()
    assert [(int(m.payload), m.dup) for m in again] == [
        (0, True), (1, True), (3, True), (4, True), (5, False),
    ]  # fmt: skip
    assert [m.packet_id for m in again[:4]] == [first[i].packet_id for i in (0, 1, 3, 4)]
    subscriber.drop()
    back(mqtt5).expect_silence()


@pytest.mark.spec("MQTT-4.3.3-5", "MQTT-4.3.3-6", "MQTT-4.4.0-1", of="5.0")
def test_a_released_message_is_released_again_and_not_sent_again(
    mqtt5, subscriber, publisher, topic
):
    publisher.publish(topic, b"x", 2)
    message = subscriber.expect_publish(topic, b"x", 2)
    subscriber.send(codec.ack(PUBREC, message.packet_id))
    subscriber.expect(Ack(PUBREL, message.packet_id))
    subscriber.drop()
    subscriber = back(mqtt5)
    assert subscriber.next() == Ack(PUBREL, message.packet_id)
    subscriber.send(codec.ack(PUBCOMP, message.packet_id))
    subscriber.expect_silence()


@pytest.mark.spec("MQTT-4.4.0-1", of="5.0")
def test_nothing_is_sent_again_on_the_same_connection(subscriber, publisher, topic):
    publisher.publish(topic, b"x", 2)
    subscriber.expect_publish(topic, b"x", 2)
    publisher.publish(topic, b"y", 1)
    subscriber.expect_publish(topic, b"y", 1)
    subscriber.expect_silence()


@pytest.mark.config("retry_interval 1")
@pytest.mark.waits
@pytest.mark.ours("mosquitto has no such key any more")
@pytest.mark.spec("MQTT-4.4.0-1", of="5.0")
def test_not_even_where_older_versions_may(mqtt5, subscriber, publisher, topic):
    old = mqtt5.older()
    old.subscribe(topic, qos=1)
    publisher.publish(topic, b"x", 1)
    old.expect_publish(topic, b"x", 1)
    subscriber.expect_publish(topic, b"x", 1)
    old.expect_publish(topic, b"x", 1, dup=True)
    subscriber.expect_silence()


@pytest.mark.spec("MQTT-4.3.3-10", "MQTT-4.3.3-11", "MQTT-4.1.0-1", of="5.0")
def test_a_received_id_is_kept_with_the_session(mqtt5, subscriber, topic):
    publisher = mqtt5.connect("pub", session_expiry=60)
    publisher.send(codec.publish(topic, b"once", 2, 9))
    publisher.expect_accepted(PUBREC, 9)
    publisher.drop()
    publisher = mqtt5.connect("pub", clean=False, session_expiry=60)
    publisher.send(codec.publish(topic, b"once", 2, 9, dup=True))
    publisher.expect_accepted(PUBREC, 9)
    publisher.drop()
    publisher = mqtt5.connect("pub", clean=False)
    publisher.release(9)
    assert [m.payload for m in subscriber.receive_all()] == [b"once"]


@pytest.mark.spec("MQTT-3.3.1-5", "MQTT-3.3.1-8", "MQTT-3.3.1-6", "MQTT-3.3.1-7", of="5.0")
@pytest.mark.parametrize("qos", QOS)
def test_retained_messages_are_kept_replaced_and_erased(mqtt5, publisher, topic, qos):
    def kept():
        reader = mqtt5.connect()
        reader.subscribe(topic, qos=2)
        return [(m.payload, m.qos, m.retain, m.properties) for m in reader.receive_all()]

    publisher.publish(topic, b"one", qos, retain=True, content_type="first")
    assert kept() == [(b"one", qos, True, {"content_type": "first"})]
    publisher.publish(topic, b"passing", qos)
    publisher.publish(topic, b"", qos, user=(("not", "retained"),))
    assert kept() == [(b"one", qos, True, {"content_type": "first"})]
    publisher.publish(topic, b"two", qos, retain=True)
    assert kept() == [(b"two", qos, True, {})]
    publisher.publish(topic, b"", qos, retain=True, content_type="last")
    assert kept() == []


@pytest.mark.spec("MQTT-3.3.1-6", of="5.0")
def test_an_empty_retained_message_is_passed_on_too(subscriber, publisher, topic):
    publisher.publish(topic, b"", 1, retain=True, content_type="gone")
    subscriber.receive(topic, b"", 1, content_type="gone")


@pytest.mark.config("retain_available false")
@pytest.mark.spec("MQTT-3.2.2-14", of="5.0")
def test_where_nothing_is_retained_nobody_may_ask_for_it(mqtt5, topic):
    client = mqtt5.connect()
    assert client.connack.properties["retain_available"] == 0
    client.publish(topic, b"x", 1)
    client.send(codec.publish(topic, b"x", retain=True))
    client.expect_disconnect(0x9A)


@pytest.mark.spec("MQTT-3.12.4-1", of="5.0")
def test_a_ping_is_answered(mqtt5):
    client = mqtt5.connect()
    client.send(codec.PINGREQ * 3)
    assert [client.next() for _ in range(3)] == [codec.Pingresp()] * 3


@pytest.mark.parametrize("size", [20_000, 100_000, 1_000_000])
@pytest.mark.parametrize("qos", QOS)
def test_large_messages_with_properties(subscriber, publisher, topic, size, qos):
    payload = bytes(i * 7 & 255 for i in range(251)) * (size // 251)
    properties = {"user": (("name", "v" * 1000),), "content_type": "bytes"}
    publisher.publish(topic, payload, qos, **properties)
    subscriber.receive(topic, payload, qos, **properties)
