"""Hooks that publish when somebody comes or goes, on both runtimes and in a Pico W's heap."""

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
from .process import Program

SCRIPT = Path(__file__).with_name("presence_broker.py")
HEAP_KB = boards.load("RPI_PICO_W").heap_kb

pytestmark = pytest.mark.ours("mosquitto asks files and plugins")


@pytest.fixture
def address(runtime, tmp_path):
    """Where presence_broker.py listens; its end must be a good one."""
    port = free_port()
    command, env = [sys.executable, str(SCRIPT), str(port)], dict(os.environ)
    if runtime == "micropython":
        command = micropython.command(32, HEAP_KB, SCRIPT, command[2:])
        env = micropython.environment(mpy.build_for(micropython.find(32)))
    broker = Program(command, tmp_path, env)
    broker.wait_for(lambda: broker.lines, "the broker to listen")
    yield ("127.0.0.1", port)
    last = Client(("127.0.0.1", port))
    last.connect(codec.connect("stop"))
    broker.finish()
    last.sock.close()


def test_who_comes_and_goes_is_told_and_kept(address):
    watcher = Client(address)
    watcher.connect(codec.connect("watcher"))
    watcher.subscribe("here/+", qos=1)
    watcher.receive("here/watcher", b"yes", 1, retain=True)
    for _ in range(20):  # each frees what it took
        old = Client(address)
        old.connect(codec.connect("c"))
        watcher.receive("here/c", b"yes", 1)
        new = Client5(address)
        assert new.connect(codec5.connect("c")).code == 0  # it takes over
        watcher.receive("here/c", b"no", 1)
        watcher.receive("here/c", b"yes", 1)
        old.expect_end()
        new.sock.close()
        watcher.receive("here/c", b"no", 1)
    watcher.expect_silence()
    watcher.sock.close()


def test_who_comes_back_hears_of_itself_behind_connack(address):
    first = Client(address)
    first.connect(codec.connect("c", clean=False))
    first.subscribe("here/c", qos=1)
    first.receive("here/c", b"yes", 1, retain=True)
    first.drop()
    again = Client(address)
    assert again.connect(codec.connect("c", clean=False)).session_present
    again.receive("here/c", b"no", 1)  # told when it had gone: it waited, and was not sent before
    again.receive("here/c", b"yes", 1)
    again.expect_silence()
    again.sock.close()


def test_nothing_of_a_connect_is_in_what_is_published_on_it(address):
    watcher = Client5(address)
    watcher.connect(codec5.connect("watcher"))
    watcher.subscribe("here/+", qos=1)
    watcher.receive("here/watcher", b"yes", 1, retain=True)
    will = codec5.Will("will", b"gone", 1, properties={"content_type": "x", "message_expiry": 9})
    client = Client5(address)
    packet = codec5.connect("c", will=will, session_expiry=9, user=(("a", "b"),))
    assert client.connect(packet).code == 0
    watcher.receive("here/c", b"yes", 1)  # without properties
    client.subscribe("here/c", qos=1, options=codec5.NO_LOCAL)
    client.receive("here/c", b"yes", 1, retain=True)
    other = Client5(address)
    assert other.connect(codec5.connect("c", clean=False)).session_present
    watcher.receive("here/c", b"no", 1)
    watcher.receive("here/c", b"yes", 1)
    # It is the broker's own: No Local is about what a client publishes itself.
    other.receive("here/c", b"no", 1)
    other.receive("here/c", b"yes", 1)
    for each in (client, other, watcher):
        each.sock.close()
