"""Brokers with a bridge are killed while they pass messages both ways, see campaign.py."""

import socket
import threading
from functools import partial
from pathlib import Path

import pytest

from slotmq_tools.codec import PUBCOMP, PUBREC, PUBREL, Reader

from ..wire.process import PEER
from .campaign import Flow, Killed, Mosquitto, bridge, campaign, subscribed, wait_until
from .network import TIMEOUT_S, Link

RUNS = [
    ("cpython", "micropython", "mqttv50"),
    ("micropython", "cpython", "mqttv311"),
    ("micropython", PEER, "mqttv311"),
]


class Gate(Link):
    """Loses the next packet of a kind from one side, and the connection with it."""

    def __init__(self, target: tuple[str, int]) -> None:
        self.lost = threading.Event()
        self._wanted: tuple[int, bool] | None = None
        self._readers: dict[socket.socket, Reader] = {}
        super().__init__(target)

    def lose(self, kind: int, is_theirs: bool) -> None:
        self.lost.clear()
        self._wanted = kind, is_theirs

    def passes(self, sock: socket.socket, is_theirs: bool, data: bytes) -> None:
        reader = self._readers.setdefault(sock, Reader())
        for first, _ in reader.packets(data):
            if (first >> 4, is_theirs) == self._wanted:
                self._wanted = None
                self.lost.set()
                raise ConnectionResetError


def test_it_is_killed_in_the_midst_of_qos_2_both_ways(tmp_path: Path) -> None:
    """On 32-bit MicroPython, with SIGKILL, at each step of the dialogue in either direction."""
    there = Killed(tmp_path / "there", "cpython")
    gate = Gate(there.address)
    here = Killed(tmp_path / "here", "micropython", *bridge(gate.address))
    flows = [Flow("out", here, there, 200), Flow("in", there, here, 200)]
    wait_until(lambda: subscribed(there), "the bridge to subscribe")
    for flow in flows:
        flow.pause_s = 0.02
        flow.start()
    for kind, is_theirs in ((PUBREC, True), (PUBREL, False), (PUBREL, True), (PUBCOMP, False)):
        gate.lose(kind, is_theirs)
        assert gate.lost.wait(TIMEOUT_S), (kind, is_theirs)
        here.kill()
    for flow in flows:
        flow.join(TIMEOUT_S)
        wait_until(flow.has_all, "the last messages", flows)
        assert flow.close()[1] == 0
    for broker in (here, there):
        broker.stop()
    gate.close()


def test_mosquitto_as_it_is_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """Messages wait for it at each of five restarts, more than the 20 that it takes at a time."""
    there = Mosquitto(tmp_path / "there")
    here = Killed(tmp_path / "here", "cpython", *bridge(there.address))
    flow = Flow("out", here, there, 2400)
    wait_until(lambda: subscribed(there), "the bridge to subscribe")
    flow.start()
    for _ in range(5):
        wait_until(partial(flow.has_sent, flow.count() + 50), "the publisher", [flow])
        there.stop()
        wait_until(flow.is_ahead, "messages that wait", [flow])
        there.start()
    flow.join(TIMEOUT_S)
    wait_until(flow.has_all, "the last messages", [flow])
    assert flow.close()[1] == 0
    here.stop()
    there.stop()


@pytest.mark.nightly
@pytest.mark.parametrize(("near", "far", "version"), RUNS)
def test_kills(near: str, far: str, version: str, tmp_path: Path) -> None:
    found = campaign(tmp_path, 8000, 7, near, far, version)
    assert found["kills here"] and found["kills there"]
