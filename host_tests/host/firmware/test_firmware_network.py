"""The firmware with the real broker, on a network and a machine that fail as a board's do."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from host_tests.broker.wire import codec
from host_tests.broker.wire.client import Client
from slotmq_tools import micropython
from slotmq_tools.dev.golden import decode
from slotmq_tools.pack import mpy
from slotmq_tools.ports import free_port

HERE = Path(__file__).parent
FIRMWARE = Path(__file__).parents[3] / "firmware"
START = HERE / "fake_board_start.py"
HEAP_KB = 256
TIMEOUT_S = 60
ANCHOR, BY_HARVESTER = 4, 3  # of the recorder
NOON = 1790000000  # of a day in 2026
HOME = {"home": "secret"}
UP = "wifi home: up, 192.168.1.7"


class Board:
    """A board whose flash is a folder; each start of it is a process."""

    def __init__(self, runtime: str, flash: Path) -> None:
        self.runtime = runtime
        self.flash = flash
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self.starts = 0
        self.facts: dict[str, object] = {}  # more of air.json, see fake_board_start.py
        self.configure()
        self.network()
        self.air()

    def configure(self, *more: str) -> None:
        """Write its configuration."""
        lines = f"listener {self.port} 127.0.0.1", "allow_anonymous true", *more
        (self.flash / "slotmq.conf").write_text("\n".join(lines) + "\n")

    def network(self, **more: object) -> None:
        """Write what `slotmq deploy` writes."""
        facts = {"board": "RPI_PICO_W", "link": "station", "ssid": "home", "password": "secret"}
        (self.flash / "network.json").write_text(json.dumps(facts | more))

    def air(self, *, home: bool = True, dhcp: bool = True, hang: bool = False) -> None:
        """What is around it from now on."""
        new = self.flash / "air.new"
        facts = {"points": HOME if home else {}, "dhcp": dhcp, "hang": hang}
        new.write_text(json.dumps(facts | self.facts))
        new.rename(self.flash / "air.json")

    def start(self) -> None:
        if self.runtime == "cpython":
            path = f"{FIRMWARE}:{os.environ.get('PYTHONPATH', '')}"
            command, environment = [sys.executable, str(START)], {**os.environ, "PYTHONPATH": path}
        else:
            command = micropython.command(32, HEAP_KB, START)
            environment = micropython.environment(mpy.build_for(micropython.find(32)), FIRMWARE)
        self.starts += 1
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                command, cwd=self.flash, env=environment, stdout=output, stderr=output
            )

    @property
    def _output(self) -> Path:
        return self.flash / f"output{self.starts}"

    def said(self) -> str:
        return self._output.read_text(errors="replace")

    def hears(self, text: str, times: int = 1) -> None:
        """Wait until it has printed this so often since its start."""
        self.wait(lambda: self.said().count(text) >= times, text)

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while not condition():
            assert time.monotonic() < deadline, f"no {what}: {self.said()}"
            time.sleep(0.02)

    def client(self, packet: bytes) -> Client:
        """A client that has been let in."""
        self.wait(self._listens, "listener")
        client = Client(("127.0.0.1", self.port))
        assert client.connect(packet).code == 0
        return client

    def _listens(self) -> bool:
        assert self.process and self.process.poll() is None, self.said()
        return " on MicroPython " in self.said() or " on CPython " in self.said()

    def ends(self) -> int:
        """Its status at the end; a negative one is the signal that ended it."""
        assert self.process
        return self.process.wait(TIMEOUT_S)

    def power_cut(self) -> None:
        if self.process:
            self.process.kill()
            self.process.wait()


@pytest.fixture
def board(runtime: str, tmp_path: Path) -> Iterator[Board]:
    made = Board(runtime, tmp_path)
    yield made
    made.power_cut()


def test_sessions_outlive_the_loss_of_the_link(board: Board) -> None:
    board.start()
    board.hears(UP)
    keeper = board.client(codec.connect("keeper", clean=False))
    keeper.subscribe("doors/#", qos=1)
    will = codec.Will("doors/front", b"lost", 1)
    sensor = board.client(codec.connect("sensor", keep_alive=1, will=will))
    # Nothing comes through any more, and neither side is told so.
    board.air(home=False)
    board.hears("wifi home: lost; it is tried again")
    sensor.expect_closed()  # its keep-alive is over, and its will goes to who is away
    board.air()
    board.hears(UP, times=2)
    again = board.client(codec.connect("keeper", clean=False))
    assert again.connack.session_present
    again.receive("doors/front", b"lost", 1, dup=True)  # it has gone out before, into nothing
    again.expect_silence()
    assert board.starts == 1 and board.process and board.process.poll() is None
    keeper.sock.close()
    again.sock.close()


def test_who_is_gone_when_the_link_is_lost_finds_what_has_come(board: Board) -> None:
    board.start()
    board.hears(UP)
    keeper = board.client(codec.connect("keeper", clean=False))
    keeper.subscribe("doors/#", qos=1)
    will = codec.Will("doors/back", b"lost", 1)
    sensor = board.client(codec.connect("sensor", keep_alive=1, will=will))
    keeper.reset()
    board.air(home=False)
    sensor.expect_closed()
    board.hears("lost; it is tried again")
    board.air()
    board.hears(UP, times=2)
    again = board.client(codec.connect("keeper", clean=False))
    assert again.connack.session_present
    again.receive("doors/back", b"lost", 1)
    again.expect_silence()
    again.sock.close()


def test_the_broker_turns_while_dhcp_is_waited_for(board: Board) -> None:
    board.air(dhcp=False)
    board.start()
    client = board.client(codec.connect("me"))
    client.subscribe("news", qos=1)
    client.publish("news", b"x", 1)
    client.receive("news", b"x", 1)
    assert UP not in board.said()
    board.air()
    board.hears(UP)
    client.ping()
    client.sock.close()


def test_an_esp32_begins_wifi_before_its_tables_and_says_what_it_leaves(board: Board) -> None:
    board.facts = {"port": "esp32"}
    board.air()
    board.network(board="ESP32_GENERIC")
    board.start()
    board.hears(UP)
    client = board.client(codec.connect("me"))
    client.ping()
    # what Wi-Fi took is not there any more
    assert "slotmq: 92112 bytes are left for Wi-Fi and its packets" in board.said(), board.said()
    client.sock.close()


class Server:
    """A UDP server on loopback that answers each packet with some."""

    def __init__(self, answers: Callable[[bytes], list[bytes]]) -> None:
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind(("127.0.0.1", 0))
        self.port: int = self.sock.getsockname()[1]
        self.asked: list[bytes] = []
        self.answers = answers
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            packet, peer = self.sock.recvfrom(512)
            self.asked.append(packet)
            for answer in self.answers(packet):
                self.sock.sendto(answer, peer)


def time_of_day(_packet: bytes) -> list[bytes]:
    return [bytes(40) + (NOON + 2208988800).to_bytes(4, "big") + bytes(4)]


def names(packet: bytes) -> list[bytes]:
    """Wrong answers of every kind, and then the right one, behind another name."""
    head, asked = packet[:2] + b"\x81\x80\0\1\0\2\0\0\0\0", packet[12:]
    cname = b"\xc0\x0c\0\5\0\1\0\0\0\x3c\0\4\1b\xc0\x0c"
    right = head + asked + cname + b"\1b\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\x7f\0\0\1"
    other_name = bytes([*asked[:1], asked[1] ^ 1, *asked[2:]])
    wrong = [b"", packet, b"??" + right[2:], head + other_name + right[len(packet) :]]
    return [*wrong, right]


def test_a_time_servers_name_is_looked_up_among_answers_of_others(board: Board) -> None:
    dns, ntp = Server(names), Server(time_of_day)
    board.facts = {"dns": dns.port, "ntp": ntp.port}
    board.air()
    board.network(time="ntp.example")
    board.start()
    board.wait((board.flash / "rtc.json").exists, "time")
    assert json.loads((board.flash / "rtc.json").read_text())[:3] == [2026, 9, 21]
    assert (len(dns.asked), len(ntp.asked)) == (1, 1)
    assert b"\3ntp\7example\0" in dns.asked[0]


@pytest.mark.parametrize("cut", ["silent", "cut off"])
def test_dns_that_gives_no_address_stops_nobody(board: Board, cut: str) -> None:
    dns = Server(lambda packet: [names(packet)[-1][:-9]] if cut == "cut off" else [])
    board.facts = {"dns": dns.port}
    board.air()
    board.network(time="ntp.example", watchdog=3000)
    board.start()
    board.wait(lambda: bool(dns.asked), "question")
    client = board.client(codec.connect("me"))
    for _ in range(3):
        client.ping()
    assert not (board.flash / "rtc.json").exists()
    assert board.process and board.process.poll() is None
    client.sock.close()


def anchors(board: Board) -> list[int]:
    """Who told the times that are recorded."""
    data = (board.flash / "record" / "00000000.seg").read_bytes()
    found = decode(data)["records"] if data else []  # not flushed yet
    return [each["flags"] for each in found if each["type"] == ANCHOR]


def test_the_clock_is_set_by_who_publishes_the_time(board: Board) -> None:
    board.network(time="$SLOTMQ/time")
    board.configure("remote_admin true", "record #", "record_flush_interval 1")
    board.start()
    client = board.client(codec.connect("clock"))
    client.publish("$SLOTMQ/time", b"noon", 1)
    board.hears("slotmq: $SLOTMQ/time: expected seconds since 1970")
    assert not (board.flash / "rtc.json").exists()
    client.publish("$SLOTMQ/time", b"1790000000.250 40 harvester", 1)
    board.wait((board.flash / "rtc.json").exists, "time")
    year, month, day, _, hour, minute, second, _ = json.loads(
        (board.flash / "rtc.json").read_text()
    )
    assert (year, month, day, hour, minute, second) == (2026, 9, 21, 14, 13, 20)
    client.sock.close()
    board.wait(lambda: anchors(board)[-1:] == [BY_HARVESTER], "an anchor")


def test_nobody_sets_the_clock_by_default(board: Board) -> None:
    board.network(time="$SLOTMQ/time")
    board.start()
    board.hears("slotmq: $SLOTMQ/time: needs remote_admin true in slotmq.conf")
    client = board.client(codec.connect("clock"))
    client.publish("$SLOTMQ/time", b"1790000000", 1)
    client.ping()
    assert not (board.flash / "rtc.json").exists()
    client.sock.close()
