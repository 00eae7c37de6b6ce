"""Tables, code, clients and sessions fit the heaps of the boards, which board.json and $SYS state.

Measured on 32-bit MicroPython with each board's limits, from the .mpy files that a board would
load, by the command that writes the table of docs/board.md.
"""

import functools
import re
import time
from pathlib import Path

import pytest

from slotmq_dev import figures
from slotmq_dev.heap import table, tables_bytes
from slotmq_dev.heap.__main__ import PAGE_BOARDS
from slotmq_dev.heap.measure import (
    Measured,
    free_with_journal,
    free_with_raw_flash,
    free_with_recorder,
    limits_of,
    measure,
)
from slotmq_dev.heap.process import SERVE, Process
from slotmq_tools import boards, micropython
from slotmq_tools.deploy import mqtt_client

PAGE = Path(__file__).parents[3] / "docs/board.md"
KB = 1024
CODE = 56 * KB
FREE = 39 * KB  # with the journal 30 KB, with the recorder as well 19.4 KB
FREE_KEEPING = 29.9 * KB  # with the journal, in a file or in raw flash
NATIVE = 18.75 * KB  # of native code, on boards that have it in the heap
# Heaps in which a start never fails: these tests measure how much it takes.
LARGE = {"RPI_PICO_W": 256 * KB, "ESP32_GENERIC": 256 * KB, "HOST": 0}


@functools.cache
def measured(board: str) -> Measured:
    return measure(board, LARGE[board])


@functools.cache
def on_board(board: str) -> Measured:
    return measure(board)


def test_the_tables_of_a_pico_w() -> None:
    found = measured("RPI_PICO_W")
    assert found.tables_of_version_3 <= 40 * KB
    assert found.all_tables - found.tables_of_version_3 <= 5.8 * KB


def test_the_code() -> None:
    """Without MQTT 5.0, which takes some KB more; `mqtt_versions 3` does not load it."""
    found = measured("RPI_PICO_W")
    assert found.bytecode - found.files["slotmq.v5"] <= CODE, "\n".join(table.text(found))
    assert found.all_native <= NATIVE, "\n".join(table.text(found))


@pytest.mark.parametrize("board", ["RPI_PICO_W", "ESP32_GENERIC"])
def test_a_connected_client(board: str) -> None:
    assert measured(board).whole_client <= 1536


@pytest.mark.parametrize("board", ["RPI_PICO_W", "ESP32_GENERIC"])
def test_a_session_without_a_connection(board: str) -> None:
    assert measured(board).whole_session <= 256


@pytest.mark.parametrize(("board", "more"), [("RPI_PICO_W", 3), ("ESP32_GENERIC", 3), ("HOST", 2)])
def test_ram_bytes_is_what_the_tables_take(board: str, more: int) -> None:
    """The claim is never less, and at most this many percent more."""
    found = measured(board)
    assert limits_of(board).ram_bytes() == found.claim
    rows = "\n".join(table.text(found))
    assert found.all_tables <= found.claim <= found.all_tables * (100 + more) / 100, rows


def test_the_free_heap_of_a_pico_w(capsys: pytest.CaptureFixture[str]) -> None:
    found = on_board("RPI_PICO_W")
    with capsys.disabled():
        print(f"\n{found.board}: {found.free:,} bytes of {found.heap:,} free with 4 clients")
    assert found.free >= FREE


def test_the_free_heap_with_the_journal_in_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    free = free_with_journal("RPI_PICO_W")
    with capsys.disabled():
        print(f"\nRPI_PICO_W: {free:,} bytes free with persistence true")
    assert free >= FREE_KEEPING
    assert abs(_free_on_the_page() - free) <= 0.03 * free


def test_the_free_heap_with_the_journal_in_raw_flash(capsys: pytest.CaptureFixture[str]) -> None:
    free = free_with_raw_flash("RPI_PICO_W")
    with capsys.disabled():
        print(f"\nRPI_PICO_W: {free:,} bytes free with the journal in raw flash")
    assert free >= FREE_KEEPING
    assert abs(_free_on_the_page() - free) <= 0.03 * free


def _free_on_the_page() -> int:
    # One figure for both
    (written,) = re.findall(
        r"in a file or in raw flash, .*still has ([\d,]+)\sbytes of heap free", PAGE.read_text()
    )
    return int(written.replace(",", ""))


def test_every_module_is_measured() -> None:
    """The files add up to what the program has added to the heap."""
    found = measured("RPI_PICO_W")
    assert {
        "slotmq.fast.bytes_viper",
        "slotmq.net.loop",
        "slotmq.protocol.publish",
    } <= found.modules.keys()
    seldom = {
        "slotmq.fast.frames_viper",
        "slotmq.fast.journal_viper",
        "slotmq.fast.record_viper",
        "slotmq.fast.senders_viper",
    }
    always = set(found.native_modules) - seldom
    assert always == {name for name in found.modules if name.endswith("_viper")}
    packed = {"slotmq." + name.rpartition(".")[2] for name in seldom}
    assert set(found.native) == packed | {"slotmq.viper"}
    assert {"slotmq.core", "slotmq.viper", "slotmq.app", "slotmq.v5"} <= found.files.keys()
    assert all(size > 0 for size in found.modules.values())
    beside = found.heap - found.all_native - found.free - found.bytecode - found.all_tables
    # MicroPython's own, the collector's, clients; less what is freed after the start
    assert abs(beside) < 0.05 * found.heap


def test_the_table_of_the_page_is_up_to_date() -> None:
    now = table.numbers(table.markdown([on_board(board) for board in PAGE_BOARDS]))
    written = table.numbers(figures.get(PAGE.read_text(), "heap"))
    assert written.keys() == now.keys()
    how = "python -m slotmq_dev.heap --write docs/board.md"
    for row, value in now.items():
        assert abs(written[row] - value) <= max(64, value * 0.03), f"{row} is {value}: {how}"


def test_it_is_measured_with_32_bit_words() -> None:
    assert micropython.find(32).bits == 32


# Two runs differ by the places of names and paths.
NEAR = 0.02


@pytest.mark.parametrize("name", [name for name in boards.names() if name != "HOST"])
def test_it_is_measured(name: str) -> None:
    said = boards.load(name).tables_bytes
    assert list(said) == list(tables_bytes.CONFIGURATIONS)
    found = tables_bytes.measure(name)
    for way, size in said.items():
        assert found[way] == pytest.approx(size, rel=NEAR), (
            f"{way}: slotmq_dev.heap --write-boards"
        )
    assert limits_of(name).ram_bytes() < said[""], "the preset does not start"


KB = 1024


def test_the_free_heap_with_journal_and_recorder(
    capsys: pytest.CaptureFixture[str],
) -> None:
    free = free_with_recorder("RPI_PICO_W")
    with capsys.disabled():
        print(f"\nRPI_PICO_W: {free:,} bytes free with persistence and record")
    assert free >= 20 * KB


BOARD = "RPI_PICO_W"
LOADED = 12000  # bytes, at most, of modules that a CONNECT and a SUBSCRIBE load
CLIENTS = 60


def test_garbage_is_not_counted() -> None:
    heap = boards.load(BOARD).heap_kb * 1024
    with Process(SERVE, BOARD, heap) as process:
        process.rows()
        for _ in range(CLIENTS):
            process.connect().close()
        time.sleep(2)  # modules that were loaded on demand are dropped
        found = mqtt_client.system_topics(process.address, mqtt_client.Login(), 0.5)
        time.sleep(2)
        used = {name: size for _, name, size in process.ask()}["used"]
    assert abs(int(found["$SYS/broker/heap/current"]) - used) < LOADED
    assert abs(int(found["$SYS/broker/heap/size"]) - heap) < heap // 20
