"""The boards' facts, and that the broker compiles for each of them."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from slotmq.journal import location
from slotmq.journal.medium_flash import FlashMedium
from slotmq_tools import boards
from slotmq_tools.errors import ToolError
from slotmq_tools.pack import mpy


def test_the_boards_of_the_presets() -> None:
    assert boards.names() == [
        "ESP32_GENERIC",
        "ESP32_GENERIC_C3",
        "ESP32_GENERIC_S3",
        "HOST",
        "RPI_PICO2_W",
        "RPI_PICO_W",
        "W5500_EVB_PICO",
    ]


@pytest.mark.parametrize("name", boards.names())
def test_facts_are_whole_and_say_where_they_are_from(name: str) -> None:
    board = boards.load(name)
    assert board.name == name
    told = {"heap_kb", "sockets", "mpy_arch", "network", "machines", "tables_bytes", "files_kb"}
    assert set(board.sources) == told
    assert board.heap_kb > 0 < board.sockets
    assert board.network in ("wifi", "ethernet", "host")


def test_an_unknown_board_is_refused_with_those_there_are() -> None:
    with pytest.raises(ToolError, match="no board PDP_11, only ESP32_GENERIC, "):
        boards.load("PDP_11")


class Region:
    """A device of so many blocks; nobody reads it."""

    def __init__(self, blocks: int) -> None:
        self.blocks = blocks

    def ioctl(self, operation: int, _: int) -> int:
        return self.blocks if operation == 4 else 4096


@pytest.mark.parametrize("name", [name for name in boards.names() if boards.load(name).mpy_arch])
def test_a_boards_page_tells_how_many_blocks_a_journal_takes(name: str) -> None:
    page = (Path(__file__).parents[3] / "boards" / name / "README.md").read_text()
    told = re.search(r"takes at least ([\d,]+) blocks", page)
    assert told, page
    least = int(told[1].replace(",", ""))
    snapshot = location.snapshot_bytes(import_module(f"slotmq_boards.{name}.limits").LIMITS)
    assert FlashMedium(Region(least), snapshot).capacity >= snapshot
    # Two copies of the tables: one block less would do until both are full, two would not start.
    assert FlashMedium(Region(least - 2), snapshot).capacity < snapshot
    if given := re.search(r"leaves (\d+) with", page):
        assert int(given[1]) >= least


@pytest.mark.parametrize("arch", sorted({boards.load(name).mpy_arch for name in boards.names()}))
def test_the_broker_compiles_for_every_board(arch: str) -> None:
    compiled = mpy.build(arch or "x86")
    assert (compiled / "slotmq/viper.mpy").stat().st_size > 0
    for name in boards.names():
        assert (compiled / f"slotmq_boards/{name}/limits.mpy").is_file()
