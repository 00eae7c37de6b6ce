"""Maximum Packet Size in both directions. The client checks its own at each packet."""

import pytest

from ..wire.scene import Scene as OlderScene
from ..wire.scene import spec
from ..wire.vectors import wire
from . import codec
from .codec import Connack, Will

QOS = [0, 1, 2]
# By how many bytes a packet is too large.
OVER_1 = pytest.param(1, marks=pytest.mark.ours("mosquitto forgets the first bytes"))
OVER = pytest.mark.parametrize("over", [OVER_1, 2])


def publish_size(topic, payload, qos, properties=1):
    """The bytes of a PUBLISH whose lengths are below 128."""
    return 2 + 2 + len(topic) + (2 if qos else 0) + properties + len(payload)


@spec(new="3.1.2-24 3.1.2-25")
@OVER
@pytest.mark.parametrize("qos", QOS)
def test_a_message_that_is_too_large_is_not_sent(mqtt5, topic, qos, over):
    small, large = mqtt5.connect(maximum_packet_size=100), mqtt5.connect()
    room = 100 - publish_size(topic, b"", qos)
    for client in (small, large):
        client.subscribe(topic, qos=2)
    publisher = mqtt5.connect()
    sizes = [room, room + over, 0, 5000, room - 1]
    for size in sizes:
        publisher.publish(topic, b"x" * size, qos)
    assert [len(message.payload) for message in small.receive_all()] == [room, 0, room - 1]
    assert [len(message.payload) for message in large.receive_all()] == sizes


@spec(new="3.1.2-24")
@OVER
@pytest.mark.parametrize("qos", QOS)
def test_properties_count_in_the_packet_size(mqtt5, topic, qos, over):
    room = 100 - publish_size(topic, b"", qos, 1 + 3)
    client = mqtt5.reader(topic, qos=2, maximum_packet_size=100)
    publisher = mqtt5.connect()
    publisher.publish(topic, b"fits", qos, content_type="x" * (room - 4))
    publisher.publish(topic, b"fits", qos, content_type="x" * (room - 4 + over))
    client.receive(topic, b"fits", qos, content_type="x" * (room - 4))
    client.expect_silence()


@pytest.mark.ours("mosquitto waits for the acknowledgement of what it did not send")
@spec(new="3.1.2-24 3.1.2-25")
def test_it_holds_for_retained_and_queued_messages(mqtt5, topic):
    publisher = mqtt5.connect()
    away = mqtt5.reader(f"{topic}/+", name="away", qos=1, session_expiry=60)
    away.disconnect()
    for name, size in (("a", 10), ("b", 1000), ("c", 20)):
        publisher.publish(f"{topic}/{name}", b"x" * size, 1, retain=True)
    away = mqtt5.connect("away", clean=False, maximum_packet_size=100, receive_maximum=2)
    assert [len(message.payload) for message in away.receive_all()] == [10, 20]
    new = mqtt5.reader(f"{topic}/+", qos=1, maximum_packet_size=100)
    assert sorted(len(message.payload) for message in new.receive_all()) == [10, 20]
    for name in "abc":
        publisher.publish(f"{topic}/{name}", b"", retain=True)


@pytest.mark.ours("mosquitto waits for the acknowledgement of what it did not send")
@spec(new="3.1.2-25 3.3.4-9")
def test_a_message_that_was_not_sent_is_not_in_flight(mqtt5, topic):
    client = mqtt5.connect("sub", maximum_packet_size=100, receive_maximum=1, session_expiry=60)
    client.subscribe(topic, qos=1)
    publisher = mqtt5.connect()
    for _ in range(5):
        publisher.publish(topic, b"x" * 1000, 1)
    publisher.publish(topic, b"small", 1)
    client.receive(topic, b"small", 1)
    client.drop()
    mqtt5.connect("sub", clean=False).expect_silence()


# In packets this small nothing fits that may be omitted.
@spec(
    new="3.2.2-19 3.2.2-20 3.4.2-2 3.4.2-3 3.5.2-2 3.5.2-3 3.6.2-2 3.6.2-3 3.7.2-2 "
    "3.7.2-3 3.9.2-1 3.9.2-2 3.11.2-1 3.11.2-2 3.14.2-3 3.14.2-4",
)
@pytest.mark.parametrize("size", [25, 30, 40, 60])
def test_answers_fit_a_very_small_maximum(mqtt5, topic, size):
    client = mqtt5.connect(maximum_packet_size=size)
    client.publish(topic, b"", 1)
    client.publish(topic, b"", 2)
    assert client.request((topic, 1)) == (1,)
    assert client.withdraw(topic, f"{topic}/never") == (0, 0x11)
    client.send(codec.ack(codec.PUBREL, 999))
    assert client.next().code in mqtt5.codes(0x92, 0)
    client.send(codec.ack(codec.PUBREC, 999))
    assert client.next().code in mqtt5.codes(0x92, 0)
    client.send(codec.publish(topic, b"", 0, topic_alias=65535))
    client.expect_disconnect(0x94)


SMALL = pytest.mark.config("limit tx_bytes 640")


@pytest.mark.ours("mosquitto sends a larger SUBACK")
@spec(new="3.1.2-24")
@pytest.mark.parametrize(
    ("terms", "most", "code"),
    [({"maximum_packet_size": 30}, 25, 0x95), pytest.param({}, 634, 0x97, marks=SMALL)],
    ids=["the client's maximum", "the outgoing buffer"],
)
def test_an_answer_that_is_too_large_ends_the_connection(mqtt5, topic, terms, most, code):
    """No filter of it is subscribed, and none unsubscribed."""
    filters = [f"{topic}/{i}" for i in range(most + 1)]
    client = mqtt5.connect(**terms)
    assert client.request(*((name, 1) for name in filters[:most])) == (1,) * most
    assert client.withdraw(*filters[:most]) == (0,) * most
    for packet in (
        codec.subscribe(9, *((name, 1) for name in filters)),
        codec.unsubscribe(9, *filters),
    ):
        client = mqtt5.reader(filters[0], name="me", qos=1, session_expiry=60, **terms)
        client.send(packet)
        client.expect_disconnect(code)
        client = mqtt5.connect("me", clean=False)
        client.publish(filters[0], b"", 1)
        client.publish(filters[1], b"", 1)
        assert [m.topic for m in client.receive_all()] == filters[:1]


@pytest.mark.ours("mosquitto calls an empty client id an unspecified error")
@pytest.mark.config("allow_zero_length_clientid false")
@spec(new="3.2.2-19 3.2.2-20")
def test_a_refusal_fits_a_very_small_maximum(mqtt5):
    client = mqtt5.socket()
    client.terms = {"maximum_packet_size": 10}
    client.expect_refused(codec.connect("", maximum_packet_size=10), 0x85)


@pytest.mark.config("max_packet_size 200")
class TestMaximumOfTheBroker:
    @spec(new="3.2.2-15")
    @pytest.mark.parametrize("over", [OVER_1, 3])
    @pytest.mark.parametrize("qos", QOS)
    def test_a_larger_packet_ends_the_connection(self, mqtt5, topic, qos, over):
        client = mqtt5.connect()
        assert client.connack.properties["maximum_packet_size"] == 200
        payload = b"x" * (200 - publish_size(topic, b"", qos) - 1)
        client.publish(topic, payload, qos)
        client.send(codec.publish(topic, payload + b"x" * over, qos, 9))
        client.expect_disconnect(0x95)

    @spec(new="3.2.2-15")
    @pytest.mark.parametrize("packet", ["30 ffff 7f", "82 ff03", "e0 ffff ff7f"])
    def test_the_remaining_length_alone_is_enough(self, mqtt5, packet):
        client = mqtt5.connect()
        client.send(wire(packet) + b"\0" * 9)
        client.expect_disconnect(*mqtt5.codes(0x95, 0x81))

    def test_a_connect_that_is_too_large_is_refused(self, mqtt5):
        client = mqtt5.socket()
        client.send(mqtt5.packet(user=(("name", "v" * 200),)))
        if answer := client.answer():
            assert answer.code == 0x95
        client.expect_closed()

    @pytest.mark.ours("mosquitto closes without a word")
    @pytest.mark.whole
    def test_the_refusal_is_a_connack_if_the_level_was_read(self, mqtt5):
        """The level says which CONNACK to send; it is in the first bytes."""
        empty = len(mqtt5.packet("me", user=(("n", ""),)))
        for more, times, code in (
            (200 - empty - 2, 1, 0),  # the two lengths have a second byte by then
            (201 - empty - 2, 1, 0x95),
            (60000, 1, 0x95),
            (60000, 5, 0x95),
        ):
            said = mqtt5.packet("me", user=(("n", "v" * more),) * times)
            assert len(said) == 200 if code == 0 else len(said) > 200
            client = mqtt5.socket()
            client.send(said)
            assert client.next() == Connack(False, code)
            client.expect_last()

    @pytest.mark.parametrize("level", [3, 4])
    def test_a_larger_connect_of_an_older_version_is_not_answered(self, mqtt5, level):
        client = mqtt5.socket()
        said = OlderScene.packet(mqtt5, level=level, username="u" * 200)
        client.send(said)
        assert client.read_to_end() == b""


@spec(new="3.1.2-25")
@pytest.mark.parametrize("qos", [0, 1])
def test_a_new_alias_does_not_make_a_message_too_large(mqtt5, topic, qos):
    most = 40
    client = mqtt5.reader(topic + "/#", qos=qos, maximum_packet_size=most, topic_alias_maximum=5)
    publisher = mqtt5.connect()
    for size in range(most - 3, most + 1):
        name = f"{topic}/{size}"
        payload = b"x" * (size - 5 - len(name) - (2 if qos else 0))
        publisher.publish(name, payload, qos)
        client.receive(name, payload, qos)


@spec(new="3.14.0-1 3.1.2-24")
@pytest.mark.ours("mosquitto sends a larger CONNACK")
@pytest.mark.parametrize("most", [5, 10, 14])
def test_a_connack_above_the_maximum_becomes_a_short_refusal(mqtt5, most):
    client = mqtt5.socket()
    packet = mqtt5.packet(maximum_packet_size=most)
    answer = client.connect(packet)
    assert (answer.code, answer.properties) == (0x95, {})
    client.expect_closed()


@spec(new="3.1.2-24 3.1.4-1 3.1.4-2")
@pytest.mark.ours("mosquitto sends a larger CONNACK")
def test_a_connect_whose_connack_is_too_large_has_no_effect(mqtt5, topic):
    """No connection is taken over, no will published, no session created or discarded."""
    witness = mqtt5.reader(f"{topic}/will")
    older = mqtt5.connect("small", session_expiry=60, will=Will(f"{topic}/will", b"older"))
    older.subscribe(topic, qos=1)
    asked = {"will": Will(f"{topic}/will", b"refused"), "maximum_packet_size": 12}
    for name in ("small", "new"):
        mqtt5.refuse(0x95, name=name, session_expiry=60, **asked)
    witness.expect_silence()
    witness.publish(topic, b"x", 1)
    older.receive(topic, b"x", 1)
    assert not mqtt5.connect("new", clean=False).connack.session_present
    assert mqtt5.connect("small", clean=False).connack.session_present
