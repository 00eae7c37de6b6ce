"""PUBLISH: QoS, DUP, retain flag, packet ids, payloads, order."""

import pytest

from . import codec
from .codec import Ack
from .scene import each_version, spec

QOS = [0, 1, 2]


@each_version("3.8.4-6 3.3.4-1 4.5.0-1 4.3.2-2 4.3.3-2", "3.8.4-8 4.5.0-1 3.3.4-1")
@pytest.mark.parametrize("granted", QOS)
@pytest.mark.parametrize("published", QOS)
def test_the_qos_is_the_lower_of_published_and_granted(mqtt, topic, published, granted):
    subscriber = mqtt.reader(topic, qos=granted)
    mqtt.connect().publish(topic, b"x", published)
    subscriber.receive(topic, b"x", min(published, granted))
    subscriber.expect_silence()


@each_version("3.3.4-1 2.3.1-6", "2.2.1-5 3.3.4-1 4.3.2-4 4.3.3-8")
@pytest.mark.parametrize("packet_id", [1, 127, 128, 256, 32768, 65535])
def test_acknowledgements_carry_the_packet_id(mqtt, topic, packet_id):
    client = mqtt.connect()
    for qos in (1, 2):
        client.send(mqtt.codec.publish(topic, b"x", qos, packet_id))
        client.expect_accepted(packet_id, qos)
    client.release(packet_id)
    client.expect_silence()


@each_version("2.3.1-5 3.3.4-1 4.3.1-1", "2.2.1-2 4.3.1-1 3.3.1-2")
def test_qos_0_has_no_packet_id_and_no_answer(mqtt, topic):
    subscriber, publisher = mqtt.reader(topic, qos=2), mqtt.connect()
    publisher.send(mqtt.codec.publish(topic, b"\x00\x01payload"))
    publisher.expect_silence()
    subscriber.receive(topic, b"\x00\x01payload")


@each_version("3.3.1-3 3.3.1-1", "3.3.1-3 4.3.2-2 4.3.3-2")
@pytest.mark.parametrize("qos", [1, 2])
def test_the_publishers_dup_is_not_passed_on(mqtt, topic, qos):
    subscriber, publisher = mqtt.reader(topic, qos=qos), mqtt.connect()
    publisher.send(mqtt.codec.publish(topic, b"x", qos, 5, dup=True))
    publisher.expect_accepted(5, qos)
    if qos == 2:
        publisher.release(5)
    subscriber.receive(topic, b"x", qos, dup=False)


# Around every length at which the remaining length takes another byte.
@spec("2.3.1-5")
@pytest.mark.parametrize("qos", QOS)
@pytest.mark.parametrize("size", [0, 1, 2, 100, 124, 125, 126, 127, 128, 16379, 16380, 16383])
def test_payloads_of_all_lengths_arrive(mqtt, size, qos):
    topic = "l"
    subscriber = mqtt.reader(topic, qos=2)
    payload = bytes(i * 7 & 255 for i in range(size))
    mqtt.connect().publish(topic, payload, qos)
    subscriber.receive(topic, payload, qos)


def test_a_publisher_hears_itself(mqtt, topic):
    client = mqtt.reader(topic, qos=2)
    for qos in QOS:
        client.publish(topic, b"echo", qos)
        client.receive(topic, b"echo", qos)
    client.expect_silence()


@each_version("4.6.0-5 4.6.0-6", "4.6.0-5 4.6.0-6")
@pytest.mark.parametrize("granted", QOS)
@pytest.mark.parametrize("published", QOS)
def test_messages_arrive_in_the_order_they_were_sent(mqtt, topic, published, granted):
    subscriber, publisher = mqtt.reader(topic, qos=granted), mqtt.connect()
    numbers = range(1, 16)
    sent = [mqtt.codec.publish(topic, b"%d" % i, published, i) for i in numbers]
    publisher.send(b"".join(sent))
    for i in numbers if published else ():
        publisher.expect_accepted(i, published)
    for i in numbers if published == 2 else ():
        publisher.release(i)
    publisher.ping()
    for i in numbers:
        subscriber.receive(topic, b"%d" % i, min(published, granted))
    subscriber.expect_silence()


@each_version("4.6.0-4", "4.6.0-4")
def test_pubrels_follow_in_the_order_of_the_pubrecs(mqtt, topic):
    subscriber, publisher = mqtt.reader(topic, qos=2), mqtt.connect()
    for i in range(5):
        publisher.publish(topic, b"%d" % i, 2)
    ids = [message.packet_id for message in subscriber.publishes()]
    order = [ids[2], ids[0], ids[4], ids[1], ids[3]]
    for packet_id in order:
        subscriber.send(codec.ack(codec.PUBREC, packet_id))
    assert [subscriber.next() for _ in ids] == [mqtt.codec.Ack(codec.PUBREL, i) for i in order]
    for packet_id in order:
        subscriber.send(codec.ack(codec.PUBCOMP, packet_id))
    subscriber.expect_silence()


@each_version("2.3.1-4 4.3.2-1 4.3.3-1", "2.2.1-4 4.3.2-1 4.3.3-1")
def test_packet_ids_in_flight_are_all_different(mqtt, topic):
    subscriber = mqtt.reader(f"{topic}/1", qos=1)
    subscriber.subscribe(f"{topic}/2", qos=2)
    publisher = mqtt.connect()
    for i in range(16):
        publisher.publish(f"{topic}/{1 + i % 2}", b"%d" % i, 2)
    messages = subscriber.publishes()
    assert len({message.packet_id for message in messages}) == len(messages) == 16
    assert not any(message.dup for message in messages)


@spec("2.3.1-4 4.3.3-1")
def test_an_id_is_in_flight_until_pubcomp(mqtt, topic):
    subscriber, publisher = mqtt.reader(topic, qos=2), mqtt.connect()
    publisher.publish(topic, b"held", 2)
    held = subscriber.expect_publish(topic, b"held", 2).packet_id
    subscriber.send(codec.ack(codec.PUBREC, held))
    subscriber.expect(Ack(codec.PUBREL, held))
    for i in range(300):
        publisher.publish(topic, b"%d" % i, 1)
        assert subscriber.receive(topic, b"%d" % i, 1).packet_id != held
    subscriber.send(codec.ack(codec.PUBCOMP, held))
    subscriber.expect_silence()


@pytest.mark.parametrize("kind", [codec.PUBACK, codec.PUBCOMP])
def test_acknowledgements_of_nothing_are_ignored(mqtt, kind):
    client = mqtt.connect()
    client.send(codec.ack(kind, 4711))
    client.expect_silence()


def test_a_pubrel_of_nothing_is_completed(mqtt):
    client = mqtt.connect()
    client.release(4711)
    client.expect_silence()


@each_version(new="3.2.2-9 3.2.2-10 3.2.2-11")
@pytest.mark.ours("mosquitto does it otherwise below version 5")
@pytest.mark.parametrize(
    "maximum", [pytest.param(qos, marks=pytest.mark.config(f"max_qos {qos}")) for qos in (0, 1)]
)
def test_a_lower_maximum_qos(mqtt, topic, maximum):
    client = mqtt.connect()
    assert getattr(client.connack, "properties", {}).get("maximum_qos", maximum) == maximum
    assert client.request((topic, 2), (f"{topic}/b", 0)) == (maximum, 0)
    client.publish(topic, b"x", maximum)
    client.receive(topic, b"x", maximum)
    client.send(mqtt.codec.publish(topic, b"x", maximum + 1, 1))
    client.expect_disconnect(0x9B)


@each_version(new="3.2.2-14")
@pytest.mark.config("retain_available false")
def test_with_retain_available_false_retain_is_refused(mqtt, topic):
    client = mqtt.connect()
    assert getattr(client.connack, "properties", {}).get("retain_available", 0) == 0
    client.publish(topic, b"x", 1)
    client.send(mqtt.codec.publish(topic, b"x", 1, 9, retain=True))
    client.expect_disconnect(0x9A)
    mqtt.reader(topic).expect_silence()


@pytest.mark.config("set_tcp_nodelay false")
def test_without_tcp_nodelay_everything_arrives(mqtt, topic):
    subscriber, publisher = mqtt.connect(), mqtt.connect()
    subscriber.subscribe(topic, qos=1)
    for i in range(5):
        publisher.publish(topic, b"%d" % i, 1)
        subscriber.receive(topic, b"%d" % i, 1)
