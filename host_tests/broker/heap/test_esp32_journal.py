"""The configurations that the page of an ESP32 without PSRAM offers, with the firmware: larger
tables for a heap that has grown, and a journal without MQTT 5.0."""

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from host_tests.broker.wire import codec
from host_tests.broker.wire.client import Client
from slotmq_tools import boards
from slotmq_tools.deploy import steps

from .test_firmware import WHAT_IS_FREE, start
from .test_presets import Deployed

NAME = "ESP32_GENERIC"
PAGE = (Path(__file__).parents[3] / "boards" / NAME / "README.md").read_text()
LARGER, JOURNAL = (each.partition("```")[0] for each in PAGE.split("```conf\n")[1:])
CLIENTS = 7
PATHS = 128  # bytes by which the paths of files are longer here than on a board


def number(before: str, after: str) -> int:
    (found,) = re.findall(f"{before} ([0-9,]+) {after}", " ".join(PAGE.split()))
    return int(found.replace(",", ""))


def needed(text: str, folder: Path, clock: bool = False) -> int:
    """The bytes of heap that deploy demands."""
    conf = folder / "slotmq.conf"
    conf.write_text(f"listener 1883\nallow_anonymous true\n{text}")
    return steps.heap_needed(boards.load(NAME), conf, clock=clock)[0]


def heap_with(free: int, folder: Path) -> int:
    """A heap with so much free at the start: the collector's own tables are in it, too."""
    heap = free
    while (found := int(start(NAME, folder, heap, WHAT_IS_FREE))) < free:
        heap += free - found
    return heap + PATHS


def with_journal(folder: Path, text: str, heap: int = 0, time: str = "") -> Deployed:
    (folder / "lib").unlink(missing_ok=True)
    (folder / "j").mkdir(exist_ok=True)
    assert text.startswith("persistence true\npersistence_location /\n")
    return Deployed(NAME, folder, text.replace(" /\n", f" {folder}/j/\n"), time, heap)


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Deployed]:
    running = with_journal(tmp_path, JOURNAL)
    yield running
    running.close()


def test_the_larger_tables_take_the_heap_that_the_page_says(tmp_path: Path) -> None:
    free = number("With", "bytes or more")
    assert free - 100 < needed(LARGER, tmp_path) <= free
    heap = heap_with(free, tmp_path)
    with closing(Deployed(NAME, tmp_path, LARGER, heap=heap)) as larger:
        larger.serves(CLIENTS)


@pytest.mark.parametrize("time", ["", "127.0.0.1"])
def test_the_preset_with_a_journal_and_version_5_takes_what_the_page_says(
    time: str, tmp_path: Path
) -> None:
    free = number("the preset needs", "bytes then,")
    free += number("bytes then,", "more with `--time`") if time else 0
    kept = "".join(JOURNAL.splitlines(keepends=True)[:2])
    assert free - 100 < needed(kept, tmp_path, bool(time)) <= free
    with closing(with_journal(tmp_path, kept, heap_with(free, tmp_path), time)) as both:
        both.serves(CLIENTS)


def test_it_serves_every_qos_to_every_client(board: Deployed) -> None:
    board.serves(CLIENTS)


def test_sessions_and_retained_messages_survive_a_kill(board: Deployed, tmp_path: Path) -> None:
    kept = Client(board.address)
    board.clients.append(kept)
    assert kept.connect(codec.connect("kept", clean=False)).code == 0
    kept.subscribe("room/+", qos=2)
    kept.sock.close()
    publisher = board.connect("publisher")
    for qos in (1, 2):
        publisher.publish(f"room/{qos}", b"%d" % qos, qos, retain=True)
    board.close()
    with closing(with_journal(tmp_path, JOURNAL)) as again:
        kept = Client(again.address)
        again.clients.append(kept)
        connack = kept.connect(codec.connect("kept", clean=False))
        assert (connack.code, connack.session_present) == (0, True)
        for qos in (1, 2):
            kept.receive(f"room/{qos}", b"%d" % qos, qos)
