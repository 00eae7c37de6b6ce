"""The options of a subscription: No Local, Retain As Published, Retain Handling."""

import pytest

from ..wire.scene import spec
from .codec import AS_PUBLISHED, HANDLING, NO_LOCAL, Will

QOS = [0, 1, 2]
ALWAYS, IF_NEW, NEVER = HANDLING


@spec(new="3.8.3-3")
@pytest.mark.parametrize("qos", QOS)
def test_with_no_local_a_client_does_not_get_its_own_messages(mqtt5, topic, qos):
    one, two = mqtt5.connect(), mqtt5.connect()
    one.subscribe(topic, qos=qos, options=NO_LOCAL)
    two.subscribe(topic, qos=qos)
    one.publish(topic, b"from one", qos)
    two.publish(topic, b"from two", qos)
    assert [m.payload for m in one.receive_all()] == [b"from two"]
    assert [m.payload for m in two.receive_all()] == [b"from one", b"from two"]


@spec(new="3.8.3-3")
@pytest.mark.parametrize("qos", QOS)
@pytest.mark.parametrize("how", ["reconnect", "older version", "takeover"])
def test_no_local_holds_for_the_next_connection(mqtt5, topic, qos, how):
    client = mqtt5.connect("me", session_expiry=60)
    client.publish(topic, b"before", qos)
    client.subscribe(topic, qos=qos, options=NO_LOCAL)
    if how != "takeover":
        client.disconnect()
    client = (mqtt5.older if how == "older version" else mqtt5.connect)("me", clean=False)
    for size in (1, 1000):
        client.publish(topic, b"x" * size, qos)
    client.expect_silence()
    mqtt5.connect("another").publish(topic, b"not mine", qos)
    client.receive(topic, b"not mine", qos)


@spec(new="3.8.3-3 3.3.4-2")
def test_each_subscription_has_its_own_no_local(mqtt5, topic):
    client = mqtt5.reader(f"{topic}/+", qos=1, options=NO_LOCAL)
    client.subscribe(f"{topic}/a")
    client.publish(f"{topic}/a", b"by the other filter", 1)
    client.receive(f"{topic}/a", b"by the other filter", 0)
    client.publish(f"{topic}/b", b"by none", 1)
    client.expect_silence()


def test_a_new_no_local_subscription_may_get_the_clients_retained_message(mqtt5, topic):
    """The standard allows both: it speaks of messages that are forwarded."""
    client = mqtt5.connect()
    client.publish(topic, b"kept", retain=True)
    client.subscribe(topic, options=NO_LOCAL)
    assert len(client.publishes()) < 2
    client.publish(topic, b"", retain=True)


@spec(new="3.8.3-3")
def test_no_local_holds_for_the_clients_own_will(mqtt5, topic):
    client = mqtt5.connect("me", session_expiry=60, will=Will(topic, b"gone", 1))
    client.subscribe(topic, qos=1, options=NO_LOCAL)
    client.drop()
    mqtt5.connect("me", clean=False).expect_silence()


@spec(new="3.3.1-12 3.3.1-13")
@pytest.mark.parametrize("options", [0, AS_PUBLISHED], ids=["off", "on"])
@pytest.mark.parametrize("retain", [False, True])
@pytest.mark.parametrize("qos", QOS)
def test_retain_as_published(mqtt5, topic, qos, retain, options):
    client = mqtt5.reader(topic, qos=qos, options=options)
    client.publish(topic, b"x", qos, retain=retain)
    client.receive(topic, b"x", qos, retain=retain and options == AS_PUBLISHED)
    client.publish(topic, b"", retain=True)
    client.receive(topic, b"", retain=options == AS_PUBLISHED)


@spec(new="3.3.1-13")
def test_retain_as_published_holds_for_queued_messages(mqtt5, topic):
    names = {"as published": AS_PUBLISHED, "not": 0}
    for name, options in names.items():
        away = mqtt5.reader(topic, name=name, qos=1, options=options, session_expiry=60)
        away.disconnect()
    publisher = mqtt5.connect()
    publisher.publish(topic, b"kept", 1, retain=True)
    publisher.publish(topic, b"live", 1)
    for name, options in names.items():
        away = mqtt5.connect(name, clean=False)
        away.receive(topic, b"kept", 1, retain=options > 0)
        away.receive(topic, b"live", 1)
    publisher.publish(topic, b"", retain=True)


@spec(new="3.3.1-13")
@pytest.mark.parametrize("options", [0, AS_PUBLISHED], ids=["off", "on"])
def test_retained_messages_at_the_subscription_have_the_retain_flag(mqtt5, topic, options):
    client = mqtt5.connect()
    client.publish(topic, b"kept", 1, retain=True)
    client.subscribe(topic, qos=1, options=options)
    client.receive(topic, b"kept", 1, retain=True)
    client.publish(topic, b"", retain=True)


@spec(new="3.3.1-9 3.3.1-10 3.3.1-11 3.8.4-4")
@pytest.mark.parametrize(
    ("handling", "first", "again"),
    [(ALWAYS, True, True), (IF_NEW, True, False), (NEVER, False, False)],
    ids=["always", "if new", "never"],
)
def test_retain_handling(mqtt5, topic, handling, first, again):
    publisher = mqtt5.connect()
    publisher.publish(topic, b"kept", 1, retain=True)
    client = mqtt5.connect("me", session_expiry=60)
    for comes in (first, again):
        client.subscribe(topic, qos=1, options=handling)
        assert len(client.receive_all()) == comes
    client.unsubscribe(topic)
    client.subscribe(topic, qos=1, options=handling)
    assert len(client.receive_all()) == first
    client.disconnect()
    client = mqtt5.reader(topic, name="me", qos=1, options=handling, clean=False)
    assert len(client.receive_all()) == again
    publisher.publish(topic, b"live", 1)
    client.receive(topic, b"live", 1)
    publisher.publish(topic, b"", retain=True)


@pytest.mark.ours("mosquitto lets the first options stand")
@spec(new="3.8.4-3")
def test_subscribing_again_replaces_the_options(mqtt5, topic):
    client, other = mqtt5.connect(), mqtt5.connect()
    client.subscribe(topic, qos=2, options=NO_LOCAL | AS_PUBLISHED)
    client.publish(topic, b"1", 2)
    client.expect_silence()
    client.subscribe(topic, qos=1, options=AS_PUBLISHED | NEVER)
    client.publish(topic, b"2", 2, retain=True)
    client.receive(topic, b"2", 1, retain=True)
    client.subscribe(topic, qos=0, options=NEVER)
    client.publish(topic, b"3", 2, retain=True)
    client.receive(topic, b"3", 0)
    client.subscribe(topic, qos=1, options=NO_LOCAL | NEVER)
    client.publish(topic, b"", 2, retain=True)
    client.expect_silence()
    other.publish(topic, b"4", 2)
    client.receive(topic, b"4", 1)


def test_options_differ_from_filter_to_filter(mqtt5, topic):
    publisher = mqtt5.connect()
    for i in range(3):
        publisher.publish(f"{topic}/{i}", b"kept", 1, retain=True)
    client = mqtt5.connect()
    wanted = [(f"{topic}/0", 1 | NEVER), (f"{topic}/1", 0), (f"{topic}/2", 2 | AS_PUBLISHED)]
    assert client.request(*wanted) == (1, 0, 2)
    found = {(m.topic[-1], m.qos, m.retain) for m in client.receive_all()}
    assert found == {("1", 0, True), ("2", 1, True)}
    for i in range(3):
        publisher.publish(f"{topic}/{i}", b"", 1, retain=True)
    found = {(m.topic[-1], m.qos, m.retain) for m in client.receive_all()}
    assert found == {("0", 1, False), ("1", 0, False), ("2", 1, True)}


@pytest.mark.config("qos2_delivery release")
@spec(new="3.8.3-3")
def test_no_local_holds_for_messages_released_by_pubrel(mqtt5, topic):
    client = mqtt5.reader(topic, qos=2, options=NO_LOCAL)
    client.publish(topic, b"mine", 2)
    client.expect_silence()


@pytest.mark.config("upgrade_outgoing_qos true")
@pytest.mark.parametrize("version", [3, 4, 5])
def test_retain_as_published_with_upgrade_outgoing_qos(mqtt5, topic, version):
    client = mqtt5.reader(topic, qos=1, options=AS_PUBLISHED)
    sender = mqtt5.connect() if version == 5 else mqtt5.older(level=version)
    sender.publish(topic, b"kept", 0, retain=True)
    client.receive(topic, b"kept", 1, retain=True)
    sender.publish(topic, b"", 0, retain=True)
    client.receive(topic, b"", 1, retain=True)
