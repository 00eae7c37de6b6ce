"""The firmware on a network that fails as a board's does, and its time of day."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from host_tests.broker.wire import codec
from host_tests.broker.wire.client import Client
from host_tests.broker.wire.process import BrokerProcess
from slotmq_dev.golden import decode
from slotmq_tools import micropython
from slotmq_tools.pack import mpy
from slotmq_tools.ports import free_port

HERE = Path(__file__).parent
FIRMWARE = Path(__file__).parents[3] / "firmware"
START = HERE / "fake_board_start.py"
HEAP_KB = 256
TIMEOUT_S = 60
ANCHOR, BY_HARVESTER = 4, 3  # of the recorder
NOON = 1790000000  # a time in 2026
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
        self.facts: dict[str, object] = {}  # more entries of air.json, see fake_board_start.py
        self.configure()
        self.network_json()
        self.surroundings()

    def configure(self, *more: str) -> None:
        """Write slotmq.conf."""
        lines = f"listener {self.port} 127.0.0.1", "allow_anonymous true", *more
        (self.flash / "slotmq.conf").write_text("\n".join(lines) + "\n")

    def network_json(self, **more: object) -> None:
        """Write network.json as `slotmq deploy` does."""
        facts = {"board": "RPI_PICO_W", "link": "station", "ssid": "home", "password": "secret"}
        (self.flash / "network.json").write_text(json.dumps(facts | more))

    def surroundings(self, *, home: bool = True, dhcp: bool = True, hang: bool = False) -> None:
        """Write air.json: is there an access point, does DHCP answer, does the driver hang?"""
        new = self.flash / "air.new"
        facts = {"points": HOME if home else {}, "dhcp": dhcp, "hang": hang}
        new.write_text(json.dumps(facts | self.facts))
        new.rename(self.flash / "air.json")

    def start(self) -> None:
        if self.runtime == "cpython":
            path = f"{FIRMWARE}:{os.environ.get('PYTHONPATH', '')}"
            command = [sys.executable, "-u", str(START)]
            environment = {**os.environ, "PYTHONPATH": path}
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

    def says(self, text: str, times: int = 1) -> None:
        """Wait until this start has printed the text so often."""
        self.wait(lambda: self.said().count(text) >= times, text)

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while not condition():
            assert time.monotonic() < deadline, f"no {what}: {self.said()}"
            time.sleep(0.02)

    def client(self, packet: bytes) -> Client:
        """A connected client."""
        self.wait(self._listens, "listener")
        client = Client(("127.0.0.1", self.port))
        assert client.connect(packet).code == 0
        return client

    def _listens(self) -> bool:
        assert self.process and self.process.poll() is None, self.said()
        return " on MicroPython " in self.said() or " on CPython " in self.said()

    def exit_status(self) -> int:
        """Wait for its end; -> the exit status, or a negative signal number."""
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


@pytest.mark.parametrize("is_connected", [True, False])
def test_sessions_survive_the_loss_of_the_link(board: Board, is_connected: bool) -> None:
    """Of a client that is connected when the link is lost, and of one that was reset before."""
    board.start()
    board.says(UP)
    keeper = board.client(codec.connect("keeper", clean=False))
    keeper.subscribe("doors/#", qos=1)
    will = codec.Will("doors/front", b"lost", 1)
    sensor = board.client(codec.connect("sensor", keep_alive=1, will=will))
    if not is_connected:
        keeper.reset()
    board.surroundings(home=False)
    board.says("wifi home: lost; it is tried again")
    sensor.expect_closed()  # by its keep-alive timeout; its will is for keeper
    board.surroundings()
    board.says(UP, times=2)
    again = board.client(codec.connect("keeper", clean=False))
    assert again.connack.session_present
    again.receive("doors/front", b"lost", 1, dup=is_connected)  # the first one was lost
    again.expect_silence()
    assert board.starts == 1 and board.process and board.process.poll() is None
    keeper.sock.close()
    again.sock.close()


def test_the_broker_runs_while_dhcp_does_not_answer(board: Board) -> None:
    board.surroundings(dhcp=False)
    board.start()
    client = board.client(codec.connect("me"))
    client.subscribe("news", qos=1)
    client.publish("news", b"x", 1)
    client.receive("news", b"x", 1)
    assert UP not in board.said()
    board.surroundings()
    board.says(UP)
    client.ping()
    client.sock.close()


def test_an_esp32_starts_wifi_before_the_tables_and_logs_the_memory_left(board: Board) -> None:
    board.facts = {"port": "esp32"}
    board.surroundings()
    board.network_json(board="ESP32_GENERIC")
    board.start()
    board.says(UP)
    client = board.client(codec.connect("me"))
    client.ping()
    assert "slotmq: 92112 bytes" in board.said(), board.said()
    client.sock.close()


class Server:
    """A UDP server on loopback; `answers` returns the packets that answer one."""

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
    """Wrong answers of every kind, then the right one, with a CNAME record."""
    head, asked = packet[:2] + b"\x81\x80\0\1\0\2\0\0\0\0", packet[12:]
    cname = b"\xc0\x0c\0\5\0\1\0\0\0\x3c\0\4\1b\xc0\x0c"
    right = head + asked + cname + b"\1b\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\x7f\0\0\1"
    other_name = bytes([*asked[:1], asked[1] ^ 1, *asked[2:]])
    wrong = [b"", packet, b"??" + right[2:], head + other_name + right[len(packet) :]]
    return [*wrong, right]


def test_the_name_of_a_time_server_is_resolved_despite_wrong_answers(board: Board) -> None:
    dns, ntp = Server(names), Server(time_of_day)
    board.facts = {"dns": dns.port, "ntp": ntp.port}
    board.surroundings()
    board.network_json(time="ntp.example")
    board.start()
    board.wait((board.flash / "rtc.json").exists, "time")
    assert json.loads((board.flash / "rtc.json").read_text())[:3] == [2026, 9, 21]
    assert (len(dns.asked), len(ntp.asked)) == (1, 1)
    assert b"\3ntp\7example\0" in dns.asked[0]


@pytest.mark.parametrize("cut", ["silent", "cut off"])
def test_dns_without_an_address_does_not_block_the_broker(board: Board, cut: str) -> None:
    dns = Server(lambda packet: [names(packet)[-1][:-9]] if cut == "cut off" else [])
    board.facts = {"dns": dns.port}
    board.surroundings()
    board.network_json(time="ntp.example", watchdog=3000)
    board.start()
    board.wait(lambda: bool(dns.asked), "question")
    client = board.client(codec.connect("me"))
    for _ in range(3):
        client.ping()
    assert not (board.flash / "rtc.json").exists()
    assert board.process and board.process.poll() is None
    client.sock.close()


def anchors(board: Board) -> list[int]:
    """The source of each recorded time."""
    data = (board.flash / "record" / "00000000.seg").read_bytes()
    found = decode(data)["records"] if data else []  # not flushed yet
    return [each["flags"] for each in found if each["type"] == ANCHOR]


def test_a_message_sets_the_clock_with_remote_admin(board: Board) -> None:
    board.network_json(time="$SLOTMQ/time")
    board.configure("remote_admin true", "record #", "record_flush_interval 1")
    board.start()
    client = board.client(codec.connect("clock"))
    client.publish("$SLOTMQ/time", b"noon", 1)
    board.says("slotmq: $SLOTMQ/time: expected seconds since 1970")
    assert not (board.flash / "rtc.json").exists()
    client.publish("$SLOTMQ/time", b"1790000000.250 40 harvester", 1)
    board.wait((board.flash / "rtc.json").exists, "time")
    year, month, day, _, hour, minute, second, _ = json.loads(
        (board.flash / "rtc.json").read_text()
    )
    assert (year, month, day, hour, minute, second) == (2026, 9, 21, 14, 13, 20)
    client.sock.close()
    board.wait(lambda: anchors(board)[-1:] == [BY_HARVESTER], "an anchor")


def test_a_message_does_not_set_the_clock_by_default(board: Board) -> None:
    board.network_json(time="$SLOTMQ/time")
    board.start()
    board.says("slotmq: $SLOTMQ/time: needs remote_admin true in slotmq.conf")
    client = board.client(codec.connect("clock"))
    client.publish("$SLOTMQ/time", b"1790000000", 1)
    client.ping()
    assert not (board.flash / "rtc.json").exists()
    client.sock.close()


def test_the_name_of_a_bridges_broker_is_looked_up_while_clients_are_served(
    tmp_path: Path,
) -> None:
    there = BrokerProcess("cpython", "", tmp_path)
    answers: list[Callable[[bytes], list[bytes]]] = []
    dns = Server(lambda packet: answers[0](packet) if answers else [])
    board = Board("micropython", tmp_path)
    board.facts = {"dns": dns.port}
    board.surroundings()
    more = f"address cloud.example:{there.address[1]}", "topic # out 1", "restart_timeout 1"
    board.configure("connection up", *more, "notifications false")
    board.start()
    client = board.client(codec.connect("me"))
    board.wait(lambda: len(dns.asked) > 1, "second question")
    client.publish("waits", b"for the name", 1)
    answers.append(names)
    far = Client(there.address)
    with closing(far.sock):
        far.connect(codec.connect("far"))
        far.subscribe("#", qos=1)
        far.receive("waits", b"for the name", 1)
    assert b"\5cloud\7example\0" in dns.asked[0]
    client.sock.close()
    board.power_cut()
    there.stop()
