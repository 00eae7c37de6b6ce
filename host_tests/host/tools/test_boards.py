"""The facts of each board, and that the broker compiles for it."""

import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from slotmq.journal import location
from slotmq.journal.medium_flash import FlashMedium
from slotmq_tools import boards
from slotmq_tools.errors import ToolError
from slotmq_tools.pack import mpy

ROOT = Path(__file__).parents[3]


def test_names() -> None:
    assert boards.names() == [
        "ESP32_GENERIC",
        "ESP32_GENERIC_C3",
        "ESP32_GENERIC_S3",
        "HOST",
        "RPI_PICO2_W",
        "RPI_PICO_W",
        "W5500_EVB_PICO",
    ]


def test_each_board_is_in_the_wheel_and_in_the_tables_of_boards() -> None:
    folders = {path.parent.name for path in (ROOT / "boards").glob("*/limits.py")}
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"][
        "packages"
    ]
    assert {f"slotmq_boards.{name}" for name in folders} | {"slotmq_boards"} == {
        name for name in packages if name.startswith("slotmq_boards")
    }
    for page in ("README.md", "docs/board.md"):
        listed = re.findall(r"^\| \[(\w+)\]\(.*boards/", (ROOT / page).read_text(), re.MULTILINE)
        assert sorted(listed) == [name for name in boards.names() if boards.load(name).mpy_arch]


@pytest.mark.parametrize("name", boards.names())
def test_each_fact_has_a_source(name: str) -> None:
    board = boards.load(name)
    assert board.name == name
    facts = {"heap_kb", "sockets", "mpy_arch", "network", "machines", "tables_bytes", "files_kb"}
    assert set(board.sources) == facts
    assert board.heap_kb > 0 < board.sockets
    assert board.network in ("wifi", "ethernet", "host")


def test_an_unknown_board_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ToolError, match=r"PDP_11.*ESP32_GENERIC, "):
        boards.load("PDP_11")


class Region:
    """A block device whose content is not read."""

    def __init__(self, blocks: int) -> None:
        self.blocks = blocks

    def ioctl(self, operation: int, _: int) -> int:
        return self.blocks if operation == 4 else 4096


@pytest.mark.parametrize("name", [name for name in boards.names() if boards.load(name).mpy_arch])
def test_a_boards_readme_tells_how_many_blocks_a_journal_takes(name: str) -> None:
    page = (ROOT / "boards" / name / "README.md").read_text()
    told = re.search(r"takes at least ([\d,]+) blocks", page)
    assert told, page
    least = int(told[1].replace(",", ""))
    snapshot = location.snapshot_bytes(import_module(f"slotmq_boards.{name}.limits").LIMITS)
    assert FlashMedium(Region(least), snapshot).capacity >= snapshot
    # For two copies of the tables. With two blocks less the broker would not start.
    assert FlashMedium(Region(least - 2), snapshot).capacity < snapshot
    if given := re.search(r"leaves (\d+) with", page):
        assert int(given[1]) >= least


@pytest.mark.parametrize("arch", sorted({boards.load(name).mpy_arch for name in boards.names()}))
def test_the_broker_compiles_for_every_board(arch: str) -> None:
    compiled = mpy.build(arch or "x86")
    assert (compiled / "slotmq/viper.mpy").stat().st_size > 0
    for name in boards.names():
        assert (compiled / f"slotmq_boards/{name}/limits.mpy").is_file()
