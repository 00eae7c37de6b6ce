"""firmware/main.py with and without an app.py of the user, on both runtimes."""

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from host_tests.support.embedded import TIMEOUT_S, Program
from slotmq_tools import micropython
from slotmq_tools.pack import mpy
from slotmq_tools.ports import free_port

ROOT = Path(__file__).parents[3]
FIRMWARE, EXAMPLES = ROOT / "firmware", ROOT / "examples"
HEAP_KB = 160  # a Pico W's; here it also compiles the firmware's modules
LEAST_FREE = 24_000  # a CONNECT needs half of that for a moment
# Module machine: pins that print their values. CPython lacks two functions of time.
MACHINE = """\
import time
if not hasattr(time, "ticks_ms"):
    time.ticks_ms = lambda: time.monotonic_ns() // 1000000
    time.ticks_diff = lambda now, then: now - then
class ADC:
    def __init__(self, which): pass
    def read_u16(self): return 14021
class Pin:
    OUT = 1
    def __init__(self, number, mode=None): self.number = number
    def value(self, on=None): print("pin", self.number, on)
"""


class Board(Program):
    """A board without a network of its own; its flash is a folder."""

    def __init__(self, runtime: str, flash: Path, machine: str = MACHINE, conf: str = "") -> None:
        port = free_port()
        network = {"board": "RPI_PICO_W", "link": "host", "led": None, "watchdog": 0}
        (flash / "network.json").write_text(json.dumps(network))
        (flash / "slotmq.conf").write_text(
            f"listener {port} 127.0.0.1\nallow_anonymous true\n{conf}"
        )
        if machine:
            (flash / "machine.py").write_text(machine)
        if runtime == "cpython":
            path = f"{FIRMWARE}:{flash}:{os.environ.get('PYTHONPATH', '')}"
            environment = {**os.environ, "PYTHONPATH": path}
            command = [sys.executable, "-u", str(FIRMWARE / "main.py")]
        else:
            imports = mpy.build_for(micropython.find(32))
            environment = micropython.environment(imports, FIRMWARE, flash)
            command = micropython.command(32, HEAP_KB, FIRMWARE / "main.py")
        super().__init__(flash, port, command, environment)

    def most_free(self) -> int:
        """The highest free heap that the application has printed."""
        whole, _, _ = self.said().rpartition("\n")  # without an incomplete line
        lines = [line.split() for line in whole.splitlines()]
        return max((int(words[1]) for words in lines if words[:1] == ["free"]), default=0)


Start = Callable[..., Board]


@pytest.fixture
def start(runtime: str, tmp_path: Path) -> Iterator[Start]:
    running: list[Board] = []

    def start_one(app: str | Path, conf: str = "") -> Board:
        if isinstance(app, Path):
            shutil.copy(app, tmp_path / "app.py")
        else:
            (tmp_path / "app.py").write_text(app)
        running.append(Board(runtime, tmp_path, conf=conf))
        return running[-1]

    yield start_one
    for one in running:
        one.end()


def test_without_an_application_and_without_a_module_machine(runtime: str, tmp_path: Path) -> None:
    board = Board(runtime, tmp_path, machine="")
    try:
        client = board.connect("me")
        client.subscribe("news", qos=1)
        client.publish("news", b"x", 1)
        client.receive("news", b"x", 1)
        client.sock.close()
    finally:
        board.end()


def test_the_example_with_a_function(start: Start) -> None:
    board = start(EXAMPLES / "app.py")
    watcher = board.connect("watcher")
    watcher.subscribe("room/+", qos=1)
    watcher.receive("room/temperature", b"27.0", 0, retain=True)
    watcher.publish("relay/1/set", b"on", 1)  # refused by the example's hook: not a panel
    panel = board.connect("panel-1")
    panel.publish("relay/1/set", b"on", 1)
    board.says("pin 2 True")
    panel.publish("relay/1/set", b"off", 1)
    board.says("pin 2 False")
    assert board.said().count("pin 2 ") == 2
    for client in (watcher, panel):
        client.sock.close()


def test_the_example_with_asyncio(start: Start) -> None:
    board = start(EXAMPLES / "app_asyncio.py")
    client = board.connect("client")
    client.subscribe("app/done/+", qos=1)
    for name in ("a", "b"):
        client.publish(f"app/do/{name}", b"now", 1)
        client.receive(f"app/done/{name}", b"now", 1)
    client.subscribe("app/heartbeat", qos=0)
    first, second = client.receive_many(1) + client.receive_many(1)
    assert int(second.payload) == int(first.payload) + 1
    client.sock.close()


def test_a_board_that_records_takes_arguments_by_name(start: Start) -> None:
    board = start(
        "def start(broker):\n"
        "    def answer(topic, payload, qos, retained):\n"
        "        broker.publish('answer', payload=payload, qos=0, retain=True)\n"
        "    broker.subscribe('question', answer)\n",
        "record #\nmqtt_versions 3\n",  # 5.0 has no space beside firmware that is compiled there
    )
    client = board.connect("client")
    client.subscribe("answer", qos=0)
    client.publish("question", b"x", 1)
    client.receive("answer", b"x", 0)
    client.sock.close()


def test_the_example_in_the_guide(start: Start) -> None:
    guide = (ROOT / "docs/embed.md").read_text()
    board = start(guide.split("```python\n")[1].split("```")[0])
    client = board.connect("client")
    client.subscribe("hall/light", qos=0)
    client.receive("hall/light", b"off", 0, retain=True)
    client.publish("door/bell", b"", 1)
    client.receive("hall/light", b"on", 0)
    client.sock.close()


MEASURED = """\
import gc
def step():
    gc.collect()
    print("free", gc.mem_free())
def start(broker):
    broker.hooks = type("Hooks", (), {"may_publish": lambda self, *_: True})()
    broker.subscribe("a", print)
    return step
"""


def test_a_pico_ws_heap_suffices_for_a_subscription_and_hooks(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(MEASURED)
    board = Board("micropython", tmp_path)
    deadline = time.monotonic() + TIMEOUT_S
    try:
        while board.most_free() < LEAST_FREE:  # code loaded on demand is unloaded after a second
            assert time.monotonic() < deadline, board.said()
            time.sleep(0.05)
    finally:
        board.end()


def test_one_that_cannot_be_imported_leads_to_safe_mode(start: Start) -> None:
    board = start("import nothing_of_that_name\n")
    assert board.process.wait(TIMEOUT_S) == 0
    assert "slotmq: safe mode: app.py: " in board.said()
    assert "nothing_of_that_name" in board.said()
    assert "listening on" not in board.said()


def test_one_that_fails_later_ends_the_start(start: Start) -> None:
    board = start("def start(broker):\n    return lambda: 1 // 0\n")
    assert board.process.wait(TIMEOUT_S) == 1
    assert "listening on" in board.said()
    assert "ZeroDivisionError" in board.said()
    assert (board.output.parent / "slotmq.boots").read_text() == "+"
