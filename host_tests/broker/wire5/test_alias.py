"""Topic aliases in both directions. The client checks the aliases that the broker uses."""

import pytest

from ..wire.scene import spec
from . import codec

QOS = [0, 1, 2]


def send(client, topic, alias, payload=b"x", qos=0, **options):
    """Publish with that alias, and wait until the broker has handled it."""
    client.publish(topic, payload, qos, topic_alias=alias, **options)


@pytest.fixture
def witness(mqtt5, topic):
    return mqtt5.reader(f"{topic}/#", qos=2)


@spec(new="3.3.2-12 3.1.2-27")
@pytest.mark.parametrize("qos", QOS)
def test_an_alias_stands_for_its_topic(mqtt5, topic, witness, qos):
    client = mqtt5.connect()
    send(client, f"{topic}/a", 1, b"1", qos)
    send(client, "", 1, b"2", qos)
    send(client, f"{topic}/b", 2, b"3", qos)
    send(client, "", 1, b"4", qos)
    send(client, "", 2, b"5", qos)
    for name, payload in (("a", b"1"), ("a", b"2"), ("b", b"3"), ("a", b"4"), ("b", b"5")):
        witness.receive(f"{topic}/{name}", payload, qos)


@spec(new="3.3.2-12 3.2.2-17")
def test_every_alias_up_to_the_maximum_can_be_used(mqtt5, topic, witness):
    client = mqtt5.connect()
    maximum = client.connack.properties["topic_alias_maximum"]
    for alias in range(1, maximum + 1):
        send(client, f"{topic}/{alias}", alias)
    for alias in range(maximum, 0, -1):
        send(client, "", alias, b"again")
    topics = [f"{topic}/{alias}" for alias in range(1, maximum + 1)]
    found = [message.topic for message in witness.receive_all()]
    assert found == topics + topics[::-1]


def test_an_alias_can_be_set_again(mqtt5, topic, witness):
    client = mqtt5.connect()
    send(client, f"{topic}/a", 1)
    send(client, f"{topic}/b", 1)
    send(client, "", 1)
    assert [m.topic for m in witness.receive_all()] == [f"{topic}/{n}" for n in "abb"]


@spec(new="3.3.2-7")
def test_each_connection_has_its_own_aliases(mqtt5, topic, witness):
    one, two = mqtt5.connect("one", session_expiry=60), mqtt5.connect("two")
    send(one, f"{topic}/one", 1)
    send(two, f"{topic}/two", 1)
    send(one, "", 1)
    send(two, "", 1)
    found = [m.topic for m in witness.receive_all()]
    assert found == [f"{topic}/{name}" for name in ("one", "two", "one", "two")]
    one.drop()
    one = mqtt5.connect("one", clean=False)
    one.send(codec.publish("", b"x", topic_alias=1))
    one.expect_disconnect(*mqtt5.codes(0x82, 0x94))
    witness.expect_silence()


@spec(new="3.3.2-7")
def test_a_new_connection_in_a_reused_slot_has_no_aliases(mqtt5, topic, witness):
    for _ in range(4):
        client = mqtt5.connect()
        client.send(codec.publish("", b"x", topic_alias=1))
        client.expect_disconnect(*mqtt5.codes(0x82, 0x94))
        client = mqtt5.connect()
        send(client, f"{topic}/x", 1)
        client.disconnect()
    assert len(witness.publishes()) == 4


MAXIMUMS = [
    "default",
    *(pytest.param(n, marks=pytest.mark.config(f"max_topic_alias {n}")) for n in (0, 3)),
]


@spec(new="3.3.2-8 3.3.2-9 3.2.2-17 3.2.2-18 3.3.2-12")
@pytest.mark.parametrize("maximum", MAXIMUMS)
def test_an_alias_out_of_range_ends_the_connection(mqtt5, topic, maximum):
    announced = mqtt5.connect().connack.properties.get("topic_alias_maximum", 0)
    assert maximum in ("default", announced)
    for alias in (announced + 1, 65535, *([] if mqtt5.is_peer else [0])):
        client = mqtt5.connect()
        if announced:
            send(client, topic, announced)
            send(client, "", announced)
        client.send(codec.publish(topic, b"x", topic_alias=alias))
        client.expect_disconnect(0x94)


@spec(new="3.3.2-7")
def test_a_retained_message_has_the_topic_and_not_the_alias(mqtt5, topic):
    client = mqtt5.connect()
    send(client, topic, 1)
    send(client, "", 1, b"kept", retain=True)
    late = mqtt5.reader(topic)
    late.receive(topic, b"kept", retain=True)
    send(client, "", 1, b"", retain=True)
    late.receive(topic, b"")


@spec(new="3.1.2-26 3.1.2-27 3.3.2-11")
@pytest.mark.parametrize("maximum", [0, 1, 2, 5, 65535])
@pytest.mark.parametrize("qos", QOS)
def test_the_broker_respects_the_maximum_of_the_client(mqtt5, topic, maximum, qos):
    """With more topics than aliases each message still has its own topic."""
    client = mqtt5.reader(f"{topic}/+", qos=qos, topic_alias_maximum=maximum)
    publisher = mqtt5.connect()
    topics = [f"{topic}/{i * i % 7}" for i in range(15)]
    for name in topics:
        publisher.publish(name, b"x", qos)
    assert [message.topic for message in client.receive_all()] == topics


@pytest.mark.ours("mosquitto's own maximum came with 2.1")
@spec(new="3.1.2-26")
@pytest.mark.config("max_topic_alias_broker 10")
@pytest.mark.parametrize("qos", [0, 1])  # MQTT.js loses the topic at QoS 2
def test_the_broker_sends_the_alias_instead_of_the_topic(mqtt5, topic, qos):
    topic += "/of/some/length"
    client = mqtt5.reader(topic, qos=qos, topic_alias_maximum=1)
    publisher = mqtt5.connect()
    for i in range(4):
        publisher.publish(topic, b"%d" % i, qos)
    found = client.receive_all()
    assert [message.payload for message in found] == [b"0", b"1", b"2", b"3"]
    assert [message.named for message in found] == [True, False, False, False]


@pytest.mark.ours("mosquitto's own maximum came with 2.1")
@pytest.mark.config("max_topic_alias_broker 0")
def test_with_max_topic_alias_broker_0_it_sends_no_alias(mqtt5, topic):
    client, publisher = mqtt5.reader(topic, topic_alias_maximum=10), mqtt5.connect()
    for _ in range(4):
        publisher.publish(topic, b"x")
        assert client.receive(topic).alias == 0


@spec(new="3.3.2-7 4.4.0-1")
@pytest.mark.parametrize("maximum", [0, 3])
def test_a_message_sent_again_has_its_topic(mqtt5, topic, maximum):
    client = mqtt5.connect("sub", session_expiry=60, topic_alias_maximum=3)
    client.subscribe(f"{topic}/+", qos=1)
    publisher = mqtt5.connect()
    names = [f"{topic}/{i % 2}" for i in range(6)]
    for name in names:
        publisher.publish(name, b"x", 1)
    assert [message.topic for message in client.publishes()] == names
    client.drop()
    client = mqtt5.connect("sub", clean=False, topic_alias_maximum=maximum)
    assert [message.topic for message in client.receive_all()] == names


@spec(new="4.3.3-10")
def test_a_qos_2_message_may_be_repeated_with_the_alias_alone(mqtt5, topic, witness):
    client = mqtt5.connect()
    send(client, f"{topic}/a", 1, b"first")
    client.send(codec.publish(f"{topic}/a", b"x", 2, 7, topic_alias=1))
    client.expect_accepted(7, 2)
    client.send(codec.publish("", b"x", 2, 7, dup=True, topic_alias=1))
    client.expect_accepted(7, 2)
    client.release(7)
    assert [m.payload for m in witness.receive_all()] == [b"first", b"x"]


@pytest.mark.own_broker
@pytest.mark.config("limit connections 20")
@pytest.mark.ours("mosquitto's tables grow")
@spec(new="3.2.2-17")
def test_long_topics_leave_the_aliases_of_others_alone(mqtt5, topic, witness):
    """The arena has space for 21 times 16 topics of 1,024 bytes. When it is full, the connection
    with the most bytes in it is disconnected."""
    name = f"{topic}/" + "x" * 65400
    most, less = mqtt5.connect(), mqtt5.connect()
    for client, aliases in ((most, 3), (less, 2)):
        for alias in range(1, aliases + 1):
            send(client, name, alias)
    witness.receive_all()
    modest = [mqtt5.connect() for _ in range(3)]
    topics = [(f"{topic}/{alias}/" + "y" * 1024)[:1024] for alias in range(1, 17)]
    for client in modest:
        for alias, long in enumerate(topics, 1):
            send(client, long, alias)
    most.expect_disconnect(0x97)
    for client in modest:
        for alias in range(1, 17):
            send(client, "", alias)
    assert [m.topic for m in witness.receive_all()] == topics * 6
    for alias in (1, 2):
        send(less, "", alias)
    for alias in (3, 4):
        send(less, name, alias)
    assert [m.topic for m in witness.receive_all()] == [name] * 4
    less.send(codec.publish(name, b"x", topic_alias=5))
    less.expect_disconnect(0x97)
    for client in modest:
        send(client, "", 16)
    assert [m.topic for m in witness.receive_all()] == topics[-1:] * 3
