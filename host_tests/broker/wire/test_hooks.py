"""Hooks that decide who may connect, publish and subscribe, on both runtimes."""

import pytest

from . import codec
from .codec import Ack, Connack, Suback
from .hooked import HookedBroker


@pytest.fixture(scope="module")
def broker(runtime, tmp_path_factory):
    hooked = HookedBroker(runtime, "permissions", tmp_path_factory.mktemp("hooked"))
    yield hooked
    hooked.close()


@pytest.fixture
def user(mqtt):
    """A client that may connect."""
    return lambda: mqtt.connect(username="me", password=b"right")


pytestmark = pytest.mark.ours("mosquitto asks files and plugins")


@pytest.mark.spec("MQTT-3.2.2-4", "MQTT-3.2.2-5")
@pytest.mark.parametrize(
    ("username", "password", "code"),
    [("me", b"right", 0), ("me", b"wrong", 4), ("me", None, 4), (None, None, 5)],
)
def test_connack_has_the_hooks_code(mqtt, username, password, code):
    client = mqtt.socket()
    packet = mqtt.packet(username=username, password=password)
    assert client.connect(packet) == Connack(False, code)
    if code:
        client.expect_closed()
    else:
        client.expect_silence()


@pytest.mark.spec("MQTT-3.3.5-2", "MQTT-3.3.4-1")
@pytest.mark.parametrize("retain", [False, True])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_publish_that_is_not_allowed_is_acknowledged_and_not_delivered(user, topic, qos, retain):
    witness, publisher = user(), user()
    witness.subscribe(f"{topic}/#", qos=1)
    publisher.publish(f"{topic}/closed", b"x", qos, retain=retain)
    publisher.publish(f"{topic}/open", b"x", 1)
    witness.receive(f"{topic}/open", b"x", 1)
    witness.subscribe(f"{topic}/+", qos=1)
    witness.expect_silence()


@pytest.mark.spec("MQTT-3.9.3-1", "MQTT-3.9.3-2", "MQTT-3.8.4-5")
def test_a_subscription_that_is_not_allowed_is_refused_in_its_place(user, topic):
    client = user()
    names = [(f"{topic}/a", 1), (f"{topic}/closed", 0), (f"{topic}/b", 2), (f"{topic}/c", 0)]
    client.send(codec.subscribe(3, *names))
    assert client.next() == Suback(3, (1, 0x80, 0x80, 0))
    publisher = user()
    for end in ("a", "b", "c"):
        publisher.publish(f"{topic}/{end}")
    assert [m.topic[-1] for m in client.publishes()] == ["a", "c"]


def test_a_repeated_publish_that_is_not_allowed_is_acknowledged_again(user, topic):
    publisher = user()
    for dup in (False, True):
        publisher.send(codec.publish(f"{topic}/closed", b"x", 2, 5, dup=dup))
        publisher.expect(Ack(codec.PUBREC, 5))
    publisher.release(5)
