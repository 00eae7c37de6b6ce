"""A receiver is lost in the midst of a fan-out, and a hook publishes that, on both runtimes."""

import os
import sys
from pathlib import Path

import pytest

from slotmq_tools import micropython
from slotmq_tools.pack import mpy
from slotmq_tools.ports import free_port

from ..wire5 import codec as codec5
from ..wire5.client import Client as Client5
from . import codec
from .client import Client
from .process import Program

SCRIPT = Path(__file__).with_name("farewell_broker.py")
HEAP_KB = 1024
PAYLOAD = b"x" * 100  # two fill a buffer of the broker's

pytestmark = pytest.mark.ours("mosquitto has no hooks of this kind")


@pytest.fixture
def broker(runtime, tmp_path):
    port = free_port()
    words = [str(port), str(tmp_path)]
    command, env = [sys.executable, str(SCRIPT), *words], dict(os.environ)
    if runtime == "micropython":
        command = micropython.command(32, HEAP_KB, SCRIPT, words)
        env = micropython.environment(mpy.build_for(micropython.find(32)))
    program = Program(command, tmp_path, env)
    program.address = ("127.0.0.1", port)
    program.wait_for(lambda: program.lines, "the broker to listen")
    yield program
    last = Client(program.address)
    last.connect(codec.connect("stop"))
    program.finish()
    last.sock.close()


@pytest.mark.parametrize("kind", [Client, Client5], ids=["version 3", "version 5"])
def test_who_is_lost_in_a_fan_out_costs_nobody_a_message(broker, kind, tmp_path):
    words = codec5 if kind is Client5 else codec
    clients = [kind(broker.address) for _ in range(7)]
    for number, client in enumerate(clients):
        assert client.connect(words.connect(f"c{number}")).code == 0
    # The senders are heard first, since they came first; the last to subscribe is the first of
    # a route: who is lost stands before the others.
    senders, (keen, both, other, lost) = clients[:3], clients[3:]
    for client, filters in ((keen, ["t"]), (both, ["t", "gone/+"]), (other, ["gone/+"])):
        for each in filters:
            client.subscribe(each, qos=1)
    keen.subscribe("gone/none", qos=1)
    lost.subscribe("t", qos=1)
    hold = Client(broker.address)
    hold.send(codec.connect("hold"))
    broker.wait_for((tmp_path / "held").exists, "the broker to stand still")
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
