"""Hooks that decide who may connect, publish and subscribe, or that publish, on both runtimes."""

import os
import sys
from pathlib import Path

import pytest

from slotmq_tools import boards, micropython
from slotmq_tools.pack import mpy
from slotmq_tools.ports import free_port

from ..wire5 import codec as codec5
from ..wire5.client import Client as Client5
from . import codec
from .client import Client
from .codec import Ack, Connack, Suback
from .process import Program
from .scene import spec

PAYLOAD = b"x" * 100  # two fill an outgoing buffer of the broker
pytestmark = pytest.mark.ours("mosquitto asks files and plugins")
SCRIPT = Path(__file__).with_name("hooked_broker.py")


class HookedBroker(Program):
    """The script with these hooks on that runtime."""

    def __init__(self, runtime: str, hooks: str, folder: Path, heap_kb: int = 1024) -> None:
        self.address = ("127.0.0.1", free_port())
        words = [hooks, str(self.address[1]), str(folder)]
        command, env = [sys.executable, str(SCRIPT), *words], dict(os.environ)
        if runtime == "micropython":
            command = micropython.command(32, heap_kb, SCRIPT, words)
            env = micropython.environment(mpy.build_for(micropython.find(32)))
        super().__init__(command, folder, env)
        self.wait_for(lambda: self.lines, "the broker to listen")

    def close(self) -> None:
        """Let it stop, and check that it did so in order."""
        last = Client(self.address)
        last.connect(codec.connect("stop"))
        self.finish()
        last.sock.close()


@pytest.fixture(scope="module")
def broker(runtime, tmp_path_factory):
    hooked = HookedBroker(runtime, "permissions", tmp_path_factory.mktemp("hooked"))
    yield hooked
    hooked.close()


@pytest.fixture
def user(mqtt):
    """A client that may connect."""
    return lambda: mqtt.connect(username="me", password=b"right")


@spec("3.2.2-4 3.2.2-5")
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


@spec("3.3.5-2 3.3.4-1")
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


@spec("3.9.3-1 3.9.3-2 3.8.4-5")
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


@pytest.fixture
def presence(runtime, tmp_path):
    heap_kb = boards.load("RPI_PICO_W").heap_kb
    broker = HookedBroker(runtime, "presence", tmp_path, heap_kb)
    yield broker
    broker.close()


@pytest.fixture
def departures(runtime, tmp_path):
    broker = HookedBroker(runtime, "departures", tmp_path)
    yield broker
    broker.close()


def test_connect_and_disconnect_are_published_and_retained(presence):
    watcher = Client(presence.address)
    watcher.connect(codec.connect("watcher"))
    watcher.subscribe("here/+", qos=1)
    watcher.receive("here/watcher", b"yes", 1, retain=True)
    for _ in range(20):  # each frees what it took
        old = Client(presence.address)
        old.connect(codec.connect("c"))
        watcher.receive("here/c", b"yes", 1)
        new = Client5(presence.address)
        assert new.connect(codec5.connect("c")).code == 0  # it takes over
        watcher.receive("here/c", b"no", 1)
        watcher.receive("here/c", b"yes", 1)
        old.expect_end()
        new.sock.close()
        watcher.receive("here/c", b"no", 1)
    watcher.expect_silence()
    watcher.sock.close()


def test_a_returning_client_gets_its_own_presence_after_connack(presence):
    first = Client(presence.address)
    first.connect(codec.connect("c", clean=False))
    first.subscribe("here/c", qos=1)
    first.receive("here/c", b"yes", 1, retain=True)
    first.drop()
    again = Client(presence.address)
    assert again.connect(codec.connect("c", clean=False)).session_present
    again.receive("here/c", b"no", 1)  # published when it had gone, and queued
    again.receive("here/c", b"yes", 1)
    again.expect_silence()
    again.sock.close()


def test_a_message_published_at_connect_has_nothing_of_the_connect(presence):
    watcher = Client5(presence.address)
    watcher.connect(codec5.connect("watcher"))
    watcher.subscribe("here/+", qos=1)
    watcher.receive("here/watcher", b"yes", 1, retain=True)
    will = codec5.Will("will", b"gone", 1, properties={"content_type": "x", "message_expiry": 9})
    client = Client5(presence.address)
    packet = codec5.connect("c", will=will, session_expiry=9, user=(("a", "b"),))
    assert client.connect(packet).code == 0
    watcher.receive("here/c", b"yes", 1)  # without properties
    client.subscribe("here/c", qos=1, options=codec5.NO_LOCAL)
    client.receive("here/c", b"yes", 1, retain=True)
    other = Client5(presence.address)
    assert other.connect(codec5.connect("c", clean=False)).session_present
    watcher.receive("here/c", b"no", 1)
    watcher.receive("here/c", b"yes", 1)
    # No Local is about messages of the client itself; these are the broker's.
    other.receive("here/c", b"no", 1)
    other.receive("here/c", b"yes", 1)
    for each in (client, other, watcher):
        each.sock.close()


@pytest.mark.parametrize("kind", [Client, Client5], ids=["version 3", "version 5"])
def test_a_receiver_lost_in_a_fan_out_costs_no_other_a_message(departures, kind, tmp_path):
    words = codec5 if kind is Client5 else codec
    clients = [kind(departures.address) for _ in range(7)]
    for number, client in enumerate(clients):
        assert client.connect(words.connect(f"c{number}")).code == 0
    # The broker reads the senders first, since they connected first. The last subscription is
    # the first of a route, so the lost client stands before the others.
    senders, (keen, both, other, lost) = clients[:3], clients[3:]
    for client, filters in ((keen, ["t"]), (both, ["t", "gone/+"]), (other, ["gone/+"])):
        for each in filters:
            client.subscribe(each, qos=1)
    keen.subscribe("gone/none", qos=1)
    lost.subscribe("t", qos=1)
    hold = Client(departures.address)
    hold.send(codec.connect("hold"))
    departures.wait_for((tmp_path / "held").exists, "the broker to block")
    lost.reset()
    for sender in senders:
        sender.send(words.publish("t", PAYLOAD))
    (tmp_path / "go").touch()
    other.receive("gone/c6", b"x", 1)
    assert [m.topic for m in keen.receive_many(3)] == ["t"] * 3
    assert sorted(m.topic for m in both.receive_many(4)) == ["gone/c6"] + ["t"] * 3
    for client in (keen, both, other):
        assert client.receive_all() == []
    for client in (*senders, keen, both, other, hold):
        client.sock.close()
