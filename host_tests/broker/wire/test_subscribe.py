"""SUBSCRIBE and UNSUBSCRIBE, their acknowledgements, and filters that overlap."""

import itertools

import pytest

from ..wire5.codec import Unsuback
from . import codec
from .codec import Ack
from .scene import each_version, spec


def unsubscribe(client, *filters, codes):
    """Each filter has a code in 5.0; in 3.1.1 it is the same to a client whether it was there."""
    if client.codec is codec:
        client.unsubscribe(*filters)
    else:
        assert client.withdraw(*filters, user=(("a", "b"),)) == codes


@each_version(
    "2.3.1-7 3.8.4-1 3.8.4-2 3.9.3-2 3.10.4-1 3.10.4-2 3.10.4-4",
    "3.8.4-1 3.8.4-2 2.2.1-6 3.8.4-7 3.10.4-4 3.11.3-1",
)
@pytest.mark.parametrize("packet_id", [1, 2, 127, 255, 256, 65535])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_acknowledgements_carry_the_packet_id(mqtt, topic, qos, packet_id):
    client, is_old = mqtt.connect(), mqtt.codec is codec
    client.send(mqtt.codec.subscribe(packet_id, (topic, qos)))
    assert client.next() == mqtt.codec.Suback(packet_id, (qos,))
    client.expect_silence()
    client.send(mqtt.codec.unsubscribe(packet_id, topic))
    answer = Ack(codec.UNSUBACK, packet_id) if is_old else Unsuback(packet_id, (0,))
    assert client.next() == answer
    mqtt.connect().publish(topic, b"x", 1)
    client.expect_silence()


@each_version("3.8.4-4 3.8.4-5 3.9.3-1", "3.8.4-5 3.8.4-6 3.8.4-7 3.9.3-1 3.9.3-2")
def test_many_filters_in_one_packet_are_answered_in_order(mqtt, topic):
    filters = [(f"{topic}/{i}", qos) for i, qos in enumerate([2, 0, 1, 1, 0, 2, 2, 0])]
    client = mqtt.connect()
    assert client.request(*filters) == (2, 0, 1, 1, 0, 2, 2, 0)
    publisher = mqtt.connect()
    for name, qos in filters:
        publisher.publish(name, b"x", 2)
        client.receive(name, b"x", qos)


@each_version("3.8.4-4")
def test_the_same_filter_twice_in_one_packet_is_one_subscription(mqtt, topic):
    client = mqtt.connect()
    assert client.request((topic, 2), (topic, 0)) == (2, 0)
    mqtt.connect().publish(topic, b"x", 2)
    client.receive(topic, b"x", 0)
    client.expect_silence()
    client.unsubscribe(topic)
    mqtt.connect().publish(topic)
    client.expect_silence()


@each_version("3.8.4-3")
@pytest.mark.parametrize(("first", "second"), [(0, 2), (2, 0), (1, 2), (2, 1), (1, 1)])
def test_subscribing_again_replaces_the_subscription(mqtt, topic, first, second):
    client = mqtt.reader(topic, qos=first)
    client.subscribe(topic, qos=second)
    mqtt.connect().publish(topic, b"x", 2)
    client.receive(topic, b"x", second)
    client.expect_silence()


@each_version("3.8.4-3")
def test_subscribing_again_loses_no_message_in_flight(mqtt, topic):
    client, publisher = mqtt.reader(topic, qos=2), mqtt.connect()
    publisher.publish(topic, b"before", 2)
    client.subscribe(topic, qos=1)
    publisher.publish(topic, b"after", 2)
    client.receive(topic, b"before", 2)
    client.receive(topic, b"after", 1)


@each_version("3.10.4-1 3.10.4-5 3.10.4-4", "3.10.4-1 3.10.4-2 3.10.4-5 4.7.3-4")
def test_unsubscribing_takes_the_filter_literally(mqtt, topic):
    client = mqtt.reader(f"{topic}/a/b")
    for other in ("a/+", "a/#", "#", "a", "a/b/", "A/b", "+/b", "a/b/c"):
        unsubscribe(client, f"{topic}/{other}", codes=(0x11,))
    mqtt.connect().publish(f"{topic}/a/b")
    client.receive(f"{topic}/a/b")


@each_version("3.10.4-1 3.10.4-6", "3.10.4-6 3.11.3-1 3.11.3-2")
def test_many_filters_in_one_unsubscribe(mqtt, topic):
    """They end, and a wildcard among them takes no other one with it."""
    client, publisher = mqtt.reader(*(f"{topic}/{name}" for name in "+#abcd")), mqtt.connect()
    wanted = [f"{topic}/{name}" for name in ("x", "+", "#", "a", "a", "d", "c/#")]
    unsubscribe(client, *wanted, codes=(0x11, 0, 0, 0, 0x11, 0, 0x11))
    for name in "abcde":
        publisher.publish(f"{topic}/{name}")
    assert [message.topic[-1] for message in client.publishes()] == ["b", "c"]


@each_version("3.10.4-3", "3.10.4-3")
@pytest.mark.parametrize("qos", [1, 2])
def test_a_delivery_begun_before_unsubscribing_is_finished(mqtt, topic, qos):
    client = mqtt.reader(topic, name="sub", qos=qos, clean=False)
    client.publish(topic, b"begun", qos)
    message = client.expect_publish(topic, b"begun", qos)
    client.unsubscribe(topic)
    client.publish(topic, b"never", qos)
    client.drop()
    client = mqtt.connect("sub", clean=False)
    assert client.receive(topic, b"begun", qos, dup=True).packet_id == message.packet_id
    client.expect_silence()


def test_one_client_unsubscribing_leaves_the_other(mqtt, topic):
    leaving, staying = mqtt.connect(), mqtt.connect()
    for client in (leaving, staying):
        client.subscribe(topic)
    leaving.unsubscribe(topic)
    mqtt.connect().publish(topic)
    staying.receive(topic)
    leaving.expect_silence()


@each_version("3.8.4-4", "3.8.3-1 4.7.3-2")
def test_a_subscribe_of_300_filters(mqtt, topic):
    filters = [(f"{topic}/{i}", i % 3) for i in range(300)]
    client = mqtt.connect()
    assert client.request(*filters) == tuple(qos for _, qos in filters)
    mqtt.connect().publish(f"{topic}/299", b"x", 2)
    client.receive(f"{topic}/299", b"x", 2)
    client.unsubscribe(*(name for name, _ in filters))
    mqtt.connect().publish(f"{topic}/299")
    client.expect_silence()


@each_version("4.7.3-3", "4.7.3-3")
@pytest.mark.parametrize("size", [1, 127, 128, 20_000, 65_535])
def test_topics_of_every_length(mqtt, topic, size):
    name = (f"{topic}/" + "x" * size)[-size:]
    is_old = mqtt.codec is codec
    client = mqtt.reader(name, qos=1, **({} if is_old else {"topic_alias_maximum": 1}))
    about = {} if is_old else {"content_type": "text"}
    for _ in range(3):
        client.publish(name, b"x", 1, **about)
        client.receive(name, b"x", 1, **about)


MOSQUITTO_TAKES_THE_FIRST = pytest.mark.ours("mosquitto takes the first match it finds")


@each_version("3.3.5-1 3.8.4-6", "3.3.4-2")
@MOSQUITTO_TAKES_THE_FIRST
def test_overlapping_filters_have_the_highest_qos(mqtt, topic):
    client = mqtt.connect()
    assert client.request((f"{topic}/#", 0), (f"{topic}/+", 2), (f"{topic}/b", 1)) == (0, 2, 1)
    mqtt.connect().publish(f"{topic}/b", b"x", 2)
    client.receive(f"{topic}/b", b"x", 2)
    client.expect_silence()


@MOSQUITTO_TAKES_THE_FIRST
@spec("3.3.5-1")
@pytest.mark.parametrize("filters", list(itertools.permutations(["#", "+", "b"])))
@pytest.mark.parametrize("granted", list(itertools.permutations([0, 1, 2])))
def test_the_order_of_the_subscriptions_does_not_matter(mqtt, topic, filters, granted):
    client = mqtt.connect()
    for name, qos in zip(filters, granted, strict=True):
        client.subscribe(f"{topic}/{name}", qos=qos)
    mqtt.connect().publish(f"{topic}/b", b"x", 2)
    client.receive(f"{topic}/b", b"x", 2)
    client.expect_silence()


@spec("3.3.5-1 3.10.4-1")
def test_after_unsubscribing_the_highest_the_next_one_counts(mqtt, topic):
    client = mqtt.connect()
    client.request((f"{topic}/#", 0), (f"{topic}/+", 2), (f"{topic}/b", 1))
    publisher = mqtt.connect()
    for left, qos in ((f"{topic}/+", 1), (f"{topic}/b", 0)):
        client.unsubscribe(left)
        publisher.publish(f"{topic}/b", b"x", 2)
        client.receive(f"{topic}/b", b"x", qos)
    client.expect_silence()


@spec("3.3.5-1 3.1.2-5")
def test_a_queued_message_is_queued_once(mqtt, topic):
    client = mqtt.connect("sub", clean=False)
    client.request((f"{topic}/#", 1), (f"{topic}/b", 2))
    client.disconnect()
    mqtt.connect().publish(f"{topic}/b", b"x", 2)
    client = mqtt.connect("sub", clean=False)
    client.receive(f"{topic}/b", b"x", 2)
    client.expect_silence()


@spec("3.3.5-1")
@pytest.mark.config("allow_duplicate_messages true")
def test_with_allow_duplicate_messages_there_is_one_for_each_filter(mqtt, topic):
    client = mqtt.connect()
    client.request((f"{topic}/#", 0), (f"{topic}/+", 2), (f"{topic}/b", 1))
    mqtt.connect().publish(f"{topic}/b", b"x", 2)
    assert sorted(m.qos for m in client.receive_all()) == [0, 1, 2]
    client.expect_silence()


@pytest.mark.config("upgrade_outgoing_qos true")
@pytest.mark.parametrize("granted", [0, 1, 2])
def test_with_upgrade_outgoing_qos_the_qos_is_that_of_the_subscription(mqtt, topic, granted):
    client = mqtt.reader(topic, qos=granted)
    mqtt.connect().publish(topic, b"x", 0)
    client.receive(topic, b"x", granted)
