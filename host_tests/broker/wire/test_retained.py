"""Retained messages: one per topic, for later subscriptions."""

from dataclasses import replace

import pytest

from . import codec
from .codec import Publish
from .scene import each_version, spec

QOS = [0, 1, 2]


@pytest.fixture
def cleared(mqtt):
    """Topics that are cleared after the test."""
    topics: set[str] = set()
    yield topics
    if mqtt.broker.alive():
        janitor = mqtt.connect()
        for topic in topics:
            janitor.publish(topic, b"", retain=True)


def retained(mqtt, topic):
    """What a new subscription gets."""
    subscriber = mqtt.reader(topic, qos=2)
    found = subscriber.publishes()
    subscriber.disconnect()
    return found


@each_version(
    "3.3.1-5 3.3.1-7 3.3.1-10 3.3.1-11 3.1.2-7 3.1.2-4 3.3.1-12",
    "3.3.1-5 3.3.1-8 3.3.1-6 3.3.1-7",
)
@pytest.mark.parametrize("qos", QOS)
def test_the_life_of_a_retained_message(mqtt, topic, cleared, qos):
    cleared.add(topic)
    about = {} if mqtt.codec is codec else {"content_type": "its own"}

    def kept(payload, **more):
        return [replace(mqtt.codec.Publish(topic, payload, qos, retain=True), **more)]

    first, second = kept(b"first", **({"properties": about} if about else {})), kept(b"second")
    publisher = mqtt.connect("publisher", clean=False)
    assert retained(mqtt, topic) == []
    # One for each topic; the next one replaces it; another topic has none.
    publisher.publish(topic, b"first", qos, retain=True, **about)
    assert retained(mqtt, topic) == first
    for payload in (b"passing", b""):  # a message that is not retained changes nothing
        publisher.publish(topic, payload, qos)
    assert retained(mqtt, topic) == first
    publisher.publish(topic, b"second", qos, retain=True)
    assert retained(mqtt, topic) == second
    assert retained(mqtt, f"{topic}/other") == []
    # It belongs to no session: it stays when the publisher's session ends.
    publisher.disconnect()
    mqtt.connect("publisher", clean=True).disconnect()
    assert retained(mqtt, topic) == second
    # A resumed session does not get it again.
    listener = mqtt.reader(topic, name="listener", qos=2, clean=False)
    listener.receive(topic, b"second", qos, retain=True)
    listener.disconnect()
    listener = mqtt.connect("listener", clean=False)
    listener.expect_silence()
    # An empty payload clears it; it is passed on, and is not retained itself.
    publisher = mqtt.connect("publisher")
    publisher.publish(topic, b"", qos, retain=True, **about)
    listener.receive(topic, b"", qos, retain=False, **about)
    assert retained(mqtt, topic) == []
    # The topic may have one again.
    publisher.publish(topic, b"third", qos, retain=True)
    assert retained(mqtt, topic) == kept(b"third")


@each_version("3.3.1-5 3.3.1-6 3.3.1-7 3.3.1-8 3.8.4-6")
@pytest.mark.parametrize("granted", QOS)
@pytest.mark.parametrize("published", QOS)
def test_a_retained_message_is_kept_with_its_qos(mqtt, topic, cleared, published, granted):
    cleared.add(topic)
    publisher = mqtt.connect()
    publisher.publish(topic, b"a long one that is replaced", (published + 1) % 3, retain=True)
    publisher.publish(topic, b"kept", published, retain=True)
    subscriber = mqtt.reader(topic, qos=granted)
    subscriber.receive(topic, b"kept", min(published, granted), retain=True)
    subscriber.expect_silence()


@spec("3.8.4-3 3.3.1-6 3.3.1-8")
def test_subscribing_again_brings_them_again(mqtt, topic, cleared):
    cleared.add(topic)
    mqtt.connect().publish(topic, b"kept", retain=True)
    subscriber = mqtt.connect()
    for _ in range(3):
        subscriber.subscribe(topic)
        subscriber.receive(topic, b"kept", retain=True)
        subscriber.expect_silence()


@spec("3.3.1-6")
@pytest.mark.parametrize(
    ("wildcard", "found"),
    [
        ("#", {"", "/a", "/a/b", "/a/b/c", "/b", "//"}),
        ("/#", {"", "/a", "/a/b", "/a/b/c", "/b", "//"}),
        ("/+", {"/a", "/b"}),
        ("/+/b", {"/a/b"}),
        ("/a/#", {"/a", "/a/b", "/a/b/c"}),
        ("/+/+", {"/a/b", "//"}),
        ("//", {"//"}),
        ("/c", set()),
        ("/+/c/#", set()),
    ],
)
def test_wildcards_find_the_retained_messages(mqtt, topic, cleared, wildcard, found):
    publisher = mqtt.connect()
    for end in ("", "/a", "/a/b", "/a/b/c", "/b", "//"):
        cleared.add(topic + end)
        publisher.publish(topic + end, b"kept", 1, retain=True)
    subscriber = mqtt.reader(topic + ("/#" if wildcard == "#" else wildcard), qos=1)
    messages = subscriber.receive_all()
    assert sorted(m.topic for m in messages) == sorted(topic + end for end in found)
    assert all(m.retain and m.payload == b"kept" and m.qos == 1 for m in messages)


@each_version("4.7.2-1", "4.7.2-1")
def test_leading_wildcards_do_not_find_dollar_topics(mqtt, topic, cleared):
    cleared.add(f"${topic}/a")
    mqtt.connect().publish(f"${topic}/a", b"kept", retain=True)
    subscriber = mqtt.reader("+/a", "#")
    assert f"${topic}/a" not in [m.topic for m in subscriber.publishes()]
    subscriber.subscribe(f"${topic}/#")
    subscriber.receive(f"${topic}/a", b"kept", retain=True)


@spec("3.8.4-4 3.3.1-6")
def test_each_filter_of_a_subscribe_brings_its_own(mqtt, topic, cleared):
    publisher = mqtt.connect()
    for end in ("a", "b", "c"):
        cleared.add(f"{topic}/{end}")
        publisher.publish(f"{topic}/{end}", end.encode(), 2, retain=True)
    subscriber = mqtt.connect()
    subscriber.request((f"{topic}/a", 0), (f"{topic}/b", 1), (f"{topic}/none", 2))
    assert subscriber.receive_many(2) == [
        Publish(f"{topic}/a", b"a", 0, retain=True),
        Publish(f"{topic}/b", b"b", 1, retain=True),
    ]
    subscriber.expect_silence()


@each_version("3.3.1-9 3.3.1-8")
@pytest.mark.parametrize("qos", QOS)
def test_only_the_new_subscription_gets_them_and_their_retain_flag(mqtt, topic, cleared, qos):
    cleared.add(topic)
    early = mqtt.reader(topic, qos=qos)
    mqtt.connect().publish(topic, b"kept", qos, retain=True)
    early.receive(topic, b"kept", qos, retain=False)
    late = mqtt.reader(topic)
    late.receive(topic, b"kept", retain=True)
    early.expect_silence()


@spec("3.3.1-6 3.8.4-3")
@pytest.mark.parametrize(("count", "qos"), [(500, 0), (150, 1), (150, 2)])
def test_hundreds_of_them_arrive(mqtt, topic, cleared, count, qos):
    publisher = mqtt.connect()
    expected = [Publish(f"{topic}/{i}", b"%d" % i, qos, retain=True) for i in range(count)]
    for message in expected:
        cleared.add(message.topic)
        publisher.publish(message.topic, message.payload, qos, retain=True)
    subscriber = mqtt.reader(f"{topic}/+", qos=qos)
    assert subscriber.receive_many(count) == sorted(expected, key=lambda m: m.topic)
    subscriber.expect_silence()
