"""Sessions: what is stored for a client while it is away, and for how long."""

import time

import pytest

from ..wire5 import codec as codec5
from ..wire5.codec import Connack
from .scene import each_version, spec

FOREVER = 0xFFFFFFFF


def leaves(client):
    client.disconnect()


def drops(client):
    client.drop()


def leaves_with_its_will(client):
    client.disconnect(codec5.WITH_WILL)


def breaks_the_protocol(client):
    client.send(b"\xc1\x00")
    client.expect_end()


ENDS = [leaves, drops, leaves_with_its_will, breaks_the_protocol]


def back(mqtt, name="me", **options):
    """Does the broker know this client's session?"""
    return mqtt.connect(name, clean=False, **options).connack.session_present


@each_version("3.1.2-4 3.2.2-2 3.2.2-3 4.1.0-1 3.1.3-2", "3.2.2-2 3.2.2-3 3.1.3-2")
def test_a_kept_session_belongs_to_its_client_id(mqtt, topic):
    assert not back(mqtt)
    mine = mqtt.reader(topic, name="mine", qos=1, clean=False)
    assert not mine.connack.session_present
    mine.disconnect()
    mqtt.connect("pub").publish(topic, b"mine", 1)
    other = mqtt.connect("Mine", clean=False)
    assert not other.connack.session_present
    other.expect_silence()
    mine = mqtt.connect("mine", clean=False)
    assert mine.connack.session_present
    mine.receive(topic, b"mine", 1)


@each_version("3.1.2-6 3.1.4-3 3.2.2-1", "3.1.2-4 3.1.4-4")
def test_a_clean_connect_finds_no_session_and_leaves_none(mqtt, topic):
    mqtt.reader(topic, name="me", qos=1, clean=False).disconnect()
    publisher = mqtt.connect("pub")
    publisher.publish(topic, b"queued", 1)
    subscriber = mqtt.connect("me", clean=True)
    assert not subscriber.connack.session_present
    publisher.publish(topic, b"live", 1)
    subscriber.expect_silence()
    subscriber.subscribe(topic, qos=1)
    subscriber.drop()
    publisher.publish(topic, b"late", 1)
    again = mqtt.connect("me", clean=False)
    assert not again.connack.session_present
    again.expect_silence()


@spec("3.1.2-4 3.1.2-5 4.1.0-1 4.5.0-1")
@pytest.mark.parametrize("end", ["disconnect", "drop"])
def test_subscriptions_and_messages_wait_for_the_client(mqtt, topic, end):
    subscriber = mqtt.reader(topic, name="sub", qos=2, clean=False)
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


@each_version()
@pytest.mark.parametrize(
    "is_queued",
    [False, pytest.param(True, marks=pytest.mark.config("queue_qos0_messages true"))],
)
def test_qos_0_messages_wait_only_with_queue_qos0_messages(mqtt, topic, is_queued):
    mqtt.reader(topic, name="sub", qos=2, clean=False).disconnect()
    mqtt.connect("pub").publish(topic, b"x", 0)
    assert len(mqtt.connect("sub", clean=False).publishes()) == is_queued


@each_version("4.1.0-1 4.3.3-2", "4.3.3-10 4.3.3-11 4.1.0-1")
def test_received_qos_2_ids_are_part_of_the_session(mqtt, topic):
    subscriber = mqtt.reader(topic, name="sub", qos=2)
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


@each_version("3.1.2-6")
def test_received_qos_2_ids_are_forgotten_by_a_clean_connect(mqtt, topic):
    subscriber = mqtt.reader(topic, name="sub", qos=2)
    publisher = mqtt.connect("pub", clean=False)
    publisher.send(mqtt.codec.publish(topic, b"unreleased", 2, 7))
    publisher.expect_accepted(7, 2)
    publisher.disconnect()
    publisher = mqtt.connect("pub", clean=True)
    publisher.send(mqtt.codec.publish(topic, b"new", 2, 7))
    publisher.expect_accepted(7, 2)
    publisher.release(7)
    # With qos2_delivery receive the first was delivered, too.
    assert subscriber.receive_all()[-1].payload == b"new"


@each_version("3.1.4-2 3.1.2-4 4.1.0-2", "3.1.4-3 3.1.3-2 4.13.2-1")
@pytest.mark.parametrize("first", [True, False], ids=["clean", "kept"])
@pytest.mark.parametrize("second", [True, False], ids=["clean again", "kept again"])
def test_a_second_connection_takes_the_client_id_over(mqtt, topic, first, second):
    old = mqtt.reader(topic, name="twin", qos=1, clean=first)
    publisher = mqtt.connect("pub")
    publisher.publish(topic, b"unacknowledged", 1)
    old.expect_publish(topic, b"unacknowledged", 1)
    new = mqtt.connect("twin", clean=second)
    old.expect_disconnect(0x8E)
    assert new.connack.session_present == (not first and not second)
    if new.connack.session_present:
        new.receive(topic, b"unacknowledged", 1, dup=True)
    new.expect_silence()
    new.subscribe(f"{topic}/new", qos=1)  # the end of the old connection ends no new session
    new.disconnect()
    publisher.publish(f"{topic}/new", b"kept", 1)
    again = mqtt.connect("twin", clean=False)
    assert len(again.receive_all()) == (not second)


@spec(new="3.1.2-23 3.1.2-5 3.2.2-3 3.1.3-2")
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("seconds", [60, FOREVER])
def test_a_session_with_an_expiry_stays_when_the_client(mqtt5, topic, end, seconds):
    client = mqtt5.reader(topic, name="me", qos=1, session_expiry=seconds)
    end(client)
    mqtt5.connect().publish(topic, b"waited", 1)
    client = mqtt5.connect("me", clean=False)
    assert client.connack == Connack(True, 0)
    client.receive(topic, b"waited", 1)


@spec(new="3.1.2-23 3.1.2-6 3.2.2-3 4.1.0-1")
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("options", [{}, {"session_expiry": 0}], ids=["absent", "zero"])
def test_a_session_without_an_expiry_ends_when_the_client(mqtt5, topic, end, options):
    """Clean Start 0 does not change that: it is about the session before."""
    client = mqtt5.connect("me", clean=False, **options)
    assert client.connack == Connack(False, 0)
    client.subscribe(topic, qos=1)
    client.publish(topic, b"live", 1)
    client.receive(topic, b"live", 1)
    end(client)
    mqtt5.connect().publish(topic, b"lost", 1)
    client = mqtt5.connect("me", clean=False)
    assert client.connack == Connack(False, 0)
    client.publish(topic, b"lost too", 1)
    client.expect_silence()


@spec(new="3.1.2-4 3.1.4-4 3.2.2-2")
def test_clean_start_discards_the_old_session_and_can_start_a_persistent_one(mqtt5, topic):
    client = mqtt5.reader(topic, name="me", qos=1, session_expiry=60)
    client.disconnect()
    publisher = mqtt5.connect()
    publisher.publish(topic, b"dropped", 1)
    client = mqtt5.connect("me", clean=True, session_expiry=60)
    assert client.connack == Connack(False, 0)
    publisher.publish(topic, b"not subscribed", 1)
    client.subscribe(f"{topic}/new", qos=1)
    client.disconnect()
    publisher.publish(f"{topic}/new", b"kept", 1)
    client = mqtt5.connect("me", clean=False)
    assert client.connack == Connack(True, 0)
    client.receive(f"{topic}/new", b"kept", 1)
    client.expect_silence()


@spec(new="3.1.2-23")
def test_each_connect_sets_the_expiry_again(mqtt5):
    mqtt5.connect("me", session_expiry=60).disconnect()
    client = mqtt5.connect("me", clean=False)
    assert client.connack.session_present
    client.disconnect()
    assert not back(mqtt5)


@spec(new="3.1.2-23")
def test_a_disconnect_can_change_the_expiry(mqtt5):
    mqtt5.connect("me", session_expiry=60).disconnect(0, session_expiry=0)
    assert not back(mqtt5, session_expiry=1)
    mqtt5.connect("me", clean=False, session_expiry=1).disconnect(0, session_expiry=FOREVER)
    time.sleep(0.01)
    assert back(mqtt5)


def test_a_disconnect_cannot_set_an_expiry_after_0(mqtt5):
    client = mqtt5.connect("me")
    client.send(codec5.disconnect(0, session_expiry=60))
    client.expect_disconnect(0x82)
    assert not back(mqtt5)
    client = mqtt5.connect("me")
    client.disconnect(0, session_expiry=0)


@pytest.mark.waits
@spec(new="4.1.0-1 4.1.0-2 3.1.2-23")
def test_sessions_expire_while_the_client_is_away(mqtt5, topic):
    publisher, there = mqtt5.connect(), mqtt5.connect("there", session_expiry=1)
    short = mqtt5.connect("short", session_expiry=1)
    lengthened = mqtt5.connect("lengthened", session_expiry=1)
    shortened = mqtt5.connect("shortened", session_expiry=60)
    longer = mqtt5.connect("longer", session_expiry=60)
    again = mqtt5.connect("again", session_expiry=1)
    everyone = [there, short, lengthened, shortened, longer, again]
    for client in everyone:
        client.subscribe(topic, qos=1)
    publisher.publish(topic, b"one", 1)
    for client in everyone:
        client.receive(topic, b"one", 1)
    short.drop()
    longer.drop()
    again.drop()
    lengthened.disconnect(0, session_expiry=60)
    shortened.disconnect(0, session_expiry=1)
    time.sleep(0.5)
    again = mqtt5.connect("again", clean=False, session_expiry=60)
    assert again.connack.session_present
    publisher.publish(topic, b"two", 1)
    time.sleep(1.6)
    for name in ("short", "shortened"):
        assert not back(mqtt5, name), name
    for name in ("longer", "lengthened"):
        client = mqtt5.connect(name, clean=False)
        assert client.connack.session_present, name
        client.receive(topic, b"two", 1)
    again.receive(topic, b"two", 1)
    there.receive(topic, b"two", 1)


@pytest.mark.ours("mosquitto has hours, and keeps silent about them")
@pytest.mark.config("persistent_client_expiration 30")
@pytest.mark.parametrize(
    ("asked", "answered"), [(0, None), (1, None), (30, None), (31, 30), (FOREVER, 30)]
)
def test_the_broker_may_lower_the_expiry(mqtt5, asked, answered):
    client = mqtt5.connect(session_expiry=asked)
    assert client.connack.properties.get("session_expiry") == answered


@pytest.mark.waits
@pytest.mark.ours("mosquitto has hours, and keeps silent about them")
@pytest.mark.config("persistent_client_expiration 1")
@spec(new="4.1.0-2")
def test_a_lowered_expiry_holds_for_older_clients_and_at_disconnect(mqtt5):
    mqtt5.connect("new", session_expiry=FOREVER).disconnect()
    mqtt5.connect("at the end", session_expiry=1).disconnect(0, session_expiry=FOREVER)
    mqtt5.older("old", clean=False).disconnect()
    time.sleep(2.1)
    assert not back(mqtt5, "new")
    assert not back(mqtt5, "at the end")
    assert not mqtt5.older("old", clean=False).connack.session_present
