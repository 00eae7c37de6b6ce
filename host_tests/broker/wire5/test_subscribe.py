"""SUBSCRIBE and UNSUBSCRIBE: answers, codes, and which topics a filter lets through."""

import pytest

from ..wire.vectors import GOOD_TEXT
from . import codec
from .codec import Suback, Unsuback
from .refusals import refuse_filter

QOS = [0, 1, 2]


@pytest.mark.spec("MQTT-3.8.4-1", "MQTT-3.8.4-2", "MQTT-2.2.1-6", "MQTT-3.8.4-7", of="5.0")
@pytest.mark.parametrize("packet_id", [1, 127, 256, 65535])
def test_answers_carry_the_packet_id(mqtt5, topic, packet_id):
    client = mqtt5.connect()
    client.send(codec.subscribe(packet_id, (topic, 1)))
    assert client.next() == Suback(packet_id, (1,))
    client.send(codec.unsubscribe(packet_id, topic))
    assert client.next() == Unsuback(packet_id, (0,))


@pytest.mark.spec(
    "MQTT-3.8.4-5", "MQTT-3.8.4-6", "MQTT-3.8.4-7", "MQTT-3.9.3-1", "MQTT-3.9.3-2", of="5.0"
)
def test_each_filter_has_its_code_in_their_order(mqtt5, topic):
    client = mqtt5.connect()
    wanted = [(f"{topic}/{i}", qos) for i, qos in enumerate((2, 0, 1, 1, 0, 2))]
    assert client.request(*wanted) == (2, 0, 1, 1, 0, 2)
    for name, qos in wanted:
        client.publish(name, b"x", 2)
        client.receive(name, b"x", qos)


@pytest.mark.spec(
    "MQTT-3.10.4-4", "MQTT-3.10.4-5", "MQTT-3.10.4-6", "MQTT-3.11.3-1", "MQTT-3.11.3-2", of="5.0"
)
def test_unsubscribe_says_of_each_filter_whether_it_was_there(mqtt5, topic):
    client = mqtt5.connect()
    client.subscribe(f"{topic}/a", f"{topic}/+", f"{topic}/#")
    wanted = [f"{topic}/b", f"{topic}/+", f"{topic}/a", f"{topic}/a", f"{topic}/c/#"]
    assert client.withdraw(*wanted) == (0x11, 0, 0, 0x11, 0x11)
    client.publish(f"{topic}/a")
    client.receive(f"{topic}/a")
    assert client.withdraw(f"{topic}/#", user=(("a", "b"),)) == (0,)
    client.publish(f"{topic}/a")
    client.expect_silence()


@pytest.mark.spec("MQTT-3.10.4-1", "MQTT-3.10.4-2", "MQTT-4.7.3-4", of="5.0")
def test_filters_are_compared_as_they_are(mqtt5, topic):
    client = mqtt5.connect()
    client.subscribe(f"{topic}/A")
    others = [f"{topic}/a", f"{topic}/+", f"{topic}/#", f"{topic}/A/", f"/{topic}/A"]
    assert set(client.withdraw(*others)) == {0x11}
    client.publish(f"{topic}/A")
    client.receive(f"{topic}/A")


@pytest.mark.spec("MQTT-3.10.4-3", of="5.0")
@pytest.mark.parametrize("qos", [1, 2])
def test_what_began_before_an_unsubscribe_is_finished(mqtt5, topic, qos):
    client = mqtt5.connect("sub", session_expiry=60)
    client.subscribe(topic, qos=qos)
    client.publish(topic, b"begun", qos)
    message = client.expect_publish(topic, b"begun", qos)
    client.unsubscribe(topic)
    client.publish(topic, b"never", qos)
    client.drop()
    client = mqtt5.connect("sub", clean=False)
    again = client.receive(topic, b"begun", qos, dup=True)
    assert again.packet_id == message.packet_id
    client.expect_silence()


@pytest.mark.spec("MQTT-3.8.4-8", "MQTT-4.5.0-1", "MQTT-3.3.4-1", of="5.0")
@pytest.mark.parametrize("granted", QOS)
@pytest.mark.parametrize("published", QOS)
def test_the_qos_is_the_lower_of_published_and_granted(mqtt5, topic, published, granted):
    client = mqtt5.connect()
    client.subscribe(topic, qos=granted)
    client.publish(topic, b"x", published)
    client.receive(topic, b"x", min(published, granted))
    client.expect_silence()


@pytest.mark.spec("MQTT-3.3.4-2", of="5.0")
@pytest.mark.parametrize("filters", [("+", 0, "#", 2), ("#", 1, "a", 0), ("+", 2, "a", 1)])
def test_overlapping_filters_have_the_highest_qos(mqtt5, topic, filters):
    client = mqtt5.connect()
    for name, qos in zip(filters[::2], filters[1::2], strict=True):
        client.subscribe(f"{topic}/{name}", qos=qos)
    client.publish(f"{topic}/a", b"x", 2)
    found = client.receive_all()
    assert max(message.qos for message in found) == max(filters[1::2])


# Filter, topic, and whether the one lets the other through.
MATCHES = [
    ("a", "a", True), ("a", "A", False), ("a", "a/b", False), ("a/b", "a", False),
    ("+", "a", True), ("+", "", True), ("+", "a/b", False), ("+/+", "/a", True),
    ("/+", "/a", True), ("+", "/a", False), ("a/+", "a", False), ("a/+", "a/", True),
    ("a/+/c", "a/b/c", True), ("a/+/c", "a//c", True), ("a/+/c", "a/b/b/c", False),
    ("#", "a/b/c", True), ("a/#", "a", True), ("a/#", "a/", True), ("a/#", "a/b/c", True),
    ("a/#", "ab", False), ("a/b/#", "a/c", False), ("+/b/#", "a/b/c", True),
    ("a/", "a", False), ("a/", "a/", True), ("a//b", "a/b", False), (" ", "a", False),
]  # fmt: skip


@pytest.mark.spec("MQTT-3.3.2-3", "MQTT-4.7.3-4", "MQTT-4.5.0-1", of="5.0")
def test_what_a_filter_lets_through(mqtt5, topic):
    client = mqtt5.connect()
    for name, published, passes in MATCHES:
        client.subscribe(f"{topic}/{name}")
        client.publish(f"{topic}/{published}")
        found = [message.topic for message in client.publishes()]
        assert found == [f"{topic}/{published}"] * passes, (name, published)
        client.unsubscribe(f"{topic}/{name}")


@pytest.mark.spec("MQTT-4.7.2-1", of="5.0")
def test_wildcards_at_the_beginning_do_not_match_dollar_topics(mqtt5, topic):
    client = mqtt5.connect()
    client.subscribe("+/own/x", f"$test{topic}/own/x")
    client.publish(f"$test{topic}/own/x")
    assert len(client.publishes()) <= 1
    client.subscribe("#", "+/broker/#", "$other/#")
    assert not [m for m in client.publishes() if m.topic.startswith("$")]


@pytest.mark.spec("MQTT-4.7.1-1", "MQTT-4.7.1-2", "MQTT-4.7.3-1", of="5.0")
@pytest.mark.parametrize(
    "name",
    ["", "a#", "#/a", "a/#/b", "a+", "+a", "a/+b", "##", "++", "+#", "#/", "/a#", "#+", "a/++/b"],
)
def test_a_filter_that_is_none_is_refused(mqtt5, name):
    """The peer may say so with a code of its own in SUBACK."""
    for packet in (
        codec.subscribe(1, (name, 0)),
        codec.subscribe(1, ("t", 1), (name, 3)),  # malformed counts first
        codec.unsubscribe(1, "t", name),
    ):
        refuse_filter(mqtt5, mqtt5.connect(), packet)


@pytest.mark.spec("MQTT-1.5.4-1", "MQTT-1.5.4-3", "MQTT-4.7.3-4", of="5.0")
@pytest.mark.parametrize("text", GOOD_TEXT.values(), ids=GOOD_TEXT)
def test_odd_topics_pass_unchanged(mqtt5, topic, text):
    client = mqtt5.connect()
    client.subscribe(f"{topic}/{text}")
    client.publish(f"{topic}/{text}")
    client.receive(f"{topic}/{text}")


@pytest.mark.config("max_qos 1")
@pytest.mark.spec("MQTT-3.2.2-9", "MQTT-3.2.2-10", "MQTT-3.2.2-11", of="5.0")
def test_a_lower_maximum_qos(mqtt5, topic):
    client = mqtt5.connect()
    assert client.connack.properties["maximum_qos"] == 1
    assert client.request((f"{topic}/a", 2), (f"{topic}/b", 1)) == (1, 1)
    client.publish(f"{topic}/a", b"x", 1)
    client.receive(f"{topic}/a", b"x", 1)
    client.send(codec.publish(topic, b"x", 2, 1))
    client.expect_disconnect(0x9B)


@pytest.mark.config("max_qos 0")
@pytest.mark.spec("MQTT-3.2.2-9", "MQTT-3.2.2-10", "MQTT-3.2.2-11", of="5.0")
def test_the_lowest_maximum_qos(mqtt5, topic):
    client = mqtt5.connect()
    assert client.connack.properties["maximum_qos"] == 0
    assert client.request((topic, 2)) == (0,)
    client.publish(topic, b"x")
    client.receive(topic, b"x")
    client.send(codec.publish(topic, b"x", 1, 1))
    client.expect_disconnect(0x9B)


@pytest.mark.spec("MQTT-3.8.3-1", "MQTT-4.7.3-2", of="5.0")
def test_many_filters_in_one_subscribe(mqtt5, topic):
    client = mqtt5.connect()
    names = [f"{topic}/{i}" for i in range(500)]
    assert client.request(*((name, 1) for name in names), user=(("a", "b"),)) == (1,) * 500
    client.publish(names[499], b"x", 1)
    client.receive(names[499], b"x", 1)
    assert client.withdraw(*names) == (0,) * 500


@pytest.mark.spec("MQTT-4.7.3-3", of="5.0")
@pytest.mark.parametrize("size", [1, 127, 128, 20_000, 65_535])
def test_topics_of_every_length(mqtt5, topic, size):
    name = (f"{topic}/" + "x" * size)[-size:]
    client = mqtt5.connect(topic_alias_maximum=1)
    client.subscribe(name, qos=1)
    for _ in range(3):
        client.publish(name, b"x", 1, content_type="text")
        client.receive(name, b"x", 1, content_type="text")
