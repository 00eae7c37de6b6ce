"""Subscription identifiers: the subscriptions that a message matched."""

import pytest

from ..wire.scene import spec
from . import codec

QOS = [0, 1, 2]


def by(message):
    """The identifiers of a message, sorted."""
    return sorted(message.properties.get("subscription_id", ()))


@spec(new="3.3.4-3")
@pytest.mark.parametrize("number", [1, 127, 128, 16383, 16384, 2097151, 2097152, 268435455])
def test_a_message_has_the_identifier_of_its_subscription(mqtt5, topic, number):
    client = mqtt5.reader(topic, qos=2, subscription_id=number)
    for qos in QOS:
        client.publish(topic, b"x", qos)
        client.receive(topic, b"x", qos, subscription_id=(number,))


def test_all_filters_of_a_subscribe_have_its_identifier(mqtt5, topic):
    client = mqtt5.reader(f"{topic}/a", f"{topic}/b", subscription_id=7)
    client.subscribe(f"{topic}/c")
    for name, expected in (("a", {"subscription_id": (7,)}), ("b", {"subscription_id": (7,)})):
        client.publish(f"{topic}/{name}")
        client.receive(f"{topic}/{name}", **expected)
    client.publish(f"{topic}/c")
    client.receive(f"{topic}/c")


def all_of(messages):
    """The identifiers of one copy or of several; a server may send either."""
    return sorted(number for message in messages for number in by(message))


@spec(new="3.3.4-2 3.3.4-3 3.3.4-4")
@pytest.mark.parametrize("qos", QOS)
def test_the_identifiers_of_all_overlapping_subscriptions_are_sent(mqtt5, topic, qos):
    client = mqtt5.reader(f"{topic}/+", qos=0, subscription_id=1)
    client.subscribe(f"{topic}/a", qos=1, subscription_id=200)
    client.subscribe(f"{topic}/#", qos=2)
    client.subscribe("+/a", qos=0, subscription_id=3)
    client.publish(f"{topic}/a", b"x", qos)
    found = client.receive_all()
    assert all_of(found) == [1, 3, 200]
    assert max(message.qos for message in found) == qos
    assert len(found) == 1 or mqtt5.is_peer
    client.publish(f"{topic}/b", b"x", qos)
    found = client.receive_all()
    assert all_of(found) == [1]
    assert len(found) == 1 or mqtt5.is_peer


@pytest.mark.config("allow_duplicate_messages true")
@pytest.mark.ours("mosquitto sends one copy, always")
@spec(new="3.3.4-5")
def test_copies_have_the_identifier_of_their_own_subscription(mqtt5, topic):
    client = mqtt5.reader(f"{topic}/+", qos=1, subscription_id=1)
    client.subscribe(f"{topic}/a", qos=2, subscription_id=2)
    client.subscribe(f"{topic}/#", qos=0)
    client.publish(f"{topic}/a", b"x", 2)
    found = [(message.qos, by(message)) for message in client.receive_all()]
    assert sorted(found) == [(0, []), (1, [1]), (2, [2])]


@spec(new="3.8.4-3")
def test_subscribing_again_replaces_the_identifier(mqtt5, topic):
    client = mqtt5.reader(topic, subscription_id=1)
    client.subscribe(topic, subscription_id=2)
    client.publish(topic)
    client.receive(topic, subscription_id=(2,))
    client.subscribe(topic)
    client.publish(topic)
    client.receive(topic)


@spec(new="3.3.4-3")
def test_the_identifier_is_stored_with_the_session_and_its_messages(mqtt5, topic):
    away = mqtt5.reader(topic, name="away", qos=1, subscription_id=1000, session_expiry=60)
    away.disconnect()
    publisher = mqtt5.connect()
    publisher.publish(topic, b"waits", 1)
    away = mqtt5.connect("away", clean=False, session_expiry=60)
    away.expect_publish(topic, b"waits", 1, subscription_id=(1000,))
    away.drop()
    away = mqtt5.connect("away", clean=False)
    away.receive(topic, b"waits", 1, dup=True, subscription_id=(1000,))
    publisher.publish(topic, b"live", 1)
    away.receive(topic, b"live", 1, subscription_id=(1000,))


def test_a_retained_message_has_the_identifier(mqtt5, topic):
    publisher = mqtt5.connect()
    publisher.publish(topic, b"kept", 1, retain=True, user=(("a", "b"),))
    client = mqtt5.reader(topic, qos=1, subscription_id=5)
    client.receive(topic, b"kept", 1, retain=True, subscription_id=(5,), user=(("a", "b"),))
    publisher.publish(topic, b"", retain=True)


def test_each_client_gets_its_own_identifier(mqtt5, topic):
    clients = [mqtt5.connect() for _ in range(4)]
    for number, client in enumerate(clients[1:], 1):
        client.subscribe(topic, qos=number % 3, subscription_id=number)
    clients[0].subscribe(topic)
    clients[0].publish(topic, b"x", 2)
    clients[0].receive(topic, b"x", 0)
    for number, client in enumerate(clients[1:], 1):
        client.receive(topic, b"x", number % 3, subscription_id=(number,))


@pytest.mark.ours("mosquitto takes it from clients")
@spec(new="3.3.4-6")
@pytest.mark.parametrize("numbers", [1, (1, 2)])
def test_a_client_may_not_publish_an_identifier(mqtt5, topic, numbers):
    client = mqtt5.connect()
    client.send(codec.publish(topic, b"x", subscription_id=numbers))
    client.expect_disconnect(0x82)


@pytest.mark.parametrize("qos", QOS)
def test_a_no_local_subscription_adds_no_identifier_to_own_messages(mqtt5, topic, qos):
    client = mqtt5.reader(f"{topic}/+", qos=2, subscription_id=1)
    client.subscribe(f"{topic}/a", qos=2, options=codec.NO_LOCAL, subscription_id=2)
    client.publish(f"{topic}/a", b"x", qos)
    client.receive(f"{topic}/a", b"x", qos, subscription_id=(1,))
    client.subscribe(f"{topic}/#", qos=2, subscription_id=3)
    client.publish(f"{topic}/a", b"x", qos)
    assert all_of(client.receive_all()) == [1, 3]
    mqtt5.connect().publish(f"{topic}/a")
    assert all_of(client.receive_all()) == [1, 2, 3]


def test_a_message_sent_again_has_its_old_identifier(mqtt5, topic):
    """Even if the subscriptions have changed since."""
    client = mqtt5.reader(f"{topic}/a", name="sub", qos=1, subscription_id=1, session_expiry=60)
    client.publish(f"{topic}/a", b"x", 1)
    client.expect_publish(f"{topic}/a", b"x", 1, subscription_id=(1,))
    client.subscribe(f"{topic}/+", qos=1, subscription_id=2)
    client.drop()
    client = mqtt5.connect("sub", clean=False, session_expiry=60)
    client.receive(f"{topic}/a", b"x", 1, dup=True, subscription_id=(1,))


@pytest.mark.ours("mosquitto may send several copies")
@spec(new="3.3.4-3 3.3.4-4")
@pytest.mark.parametrize("expiry", [{}, {"message_expiry": 1000}], ids=["", "expires"])
@pytest.mark.parametrize("qos", QOS)
def test_all_identifiers_are_sent_with_a_topic_larger_than_a_buffer(mqtt5, topic, qos, expiry):
    name = f"{topic}/" + "x" * 17000
    client = mqtt5.reader(f"{topic}/+", qos=1, subscription_id=1, topic_alias_maximum=5)
    client.subscribe(name, qos=2, subscription_id=268435455)
    client.subscribe(f"{topic}/#", qos=0)
    client.subscribe("+/" + "x" * 17000, subscription_id=200, options=codec.NO_LOCAL)
    client.subscribe(f"$share/g/{topic}/#", subscription_id=7)
    other = mqtt5.connect()
    for who, named in ((client, [1, 268435455]), (other, [1, 200, 268435455])):
        who.publish(name, b"x", qos, content_type="text", **expiry)
        own, shared = sorted(client.receive_all(), key=lambda message: -len(by(message)))
        assert (by(own), by(shared)) == (named, [7])
        for message, most in ((own, 2), (shared, 0)):
            assert (message.topic, message.payload) == (name, b"x")
            assert message.qos == min(qos, most)
            assert message.properties["content_type"] == "text"
            assert message.properties.get("message_expiry") in ((999, 1000) if expiry else (None,))
