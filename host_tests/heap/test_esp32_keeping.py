"""The configurations that the page of an ESP32 without PSRAM offers, with the firmware's modules:
larger tables for a heap that has grown, and a journal without MQTT 5.0."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from host_tests.wire import codec
from host_tests.wire.client import Client
from slotmq_tools import boards
from slotmq_tools.deploy import steps

from .test_presets import Deployed

NAME = "ESP32_GENERIC"
PAGE = (Path(__file__).parents[2] / "boards" / NAME / "README.md").read_text()
LARGER, KEEPING = (each.partition("```")[0] for each in PAGE.split("```conf\n")[1:])
COLLECTOR = 131 / 128  # of a heap; the rest is what it counts as free
CLIENTS = 7


def number(before: str, after: str) -> int:
    (found,) = re.findall(f"{before} ([0-9,]+) {after}", " ".join(PAGE.split()))
    return int(found.replace(",", ""))


def keeping(folder: Path, text: str, heap: int = 0, time: str = "") -> Deployed:
    (folder / "lib").unlink(missing_ok=True)
    (folder / "j").mkdir(exist_ok=True)
    assert text.startswith("persistence true\npersistence_location /\n")
    return Deployed(NAME, folder, text.replace(" /\n", f" {folder}/j/\n"), time, heap)


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Deployed]:
    running = keeping(tmp_path, KEEPING)
    yield running
    running.close()


def test_the_larger_tables_take_the_heap_that_the_page_says(tmp_path: Path) -> None:
    heap = number("With", "bytes or more these lines")
    (tmp_path / "slotmq.conf").write_text(LARGER)
    need, _ = steps.heap_needed(boards.load(NAME), tmp_path / "slotmq.conf")
    assert heap - 100 < need <= heap
    larger = Deployed(NAME, tmp_path, LARGER, heap=round(heap * COLLECTOR))
    try:
        larger.serves(CLIENTS)
    finally:
        larger.close()


def test_so_does_the_preset_with_a_journal_and_version_5(tmp_path: Path) -> None:
    heap = number("the preset wants", "bytes then,")
    more = number("bytes then,", "more with `--time`")
    kept = "".join(KEEPING.splitlines(keepends=True)[:2])
    for size, time in ((heap, ""), (heap + more, "127.0.0.1")):
        both = keeping(tmp_path, kept, size, time)
        try:
            both.tells_sys(CLIENTS)
        finally:
            both.close()


def test_it_serves_every_qos_to_every_client(board: Deployed) -> None:
    board.serves(CLIENTS)


def test_what_it_keeps_is_there_after_a_kill(board: Deployed, tmp_path: Path) -> None:
    kept = Client(board.address)
    board.clients.append(kept)
    assert kept.connect(codec.connect("kept", clean=False)).code == 0
    kept.subscribe("room/+", qos=2)
    kept.sock.close()
    publisher = board.connect("publisher")
    for qos in (1, 2):
        publisher.publish(f"room/{qos}", b"%d" % qos, qos, retain=True)
    board.close()
    again = keeping(tmp_path, KEEPING)
    try:
        kept = Client(again.address)
        again.clients.append(kept)
        connack = kept.connect(codec.connect("kept", clean=False))
        assert (connack.code, connack.session_present) == (0, True)
        for qos in (1, 2):
            kept.receive(f"room/{qos}", b"%d" % qos, qos)
    finally:
        again.close()
