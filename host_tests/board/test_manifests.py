"""Each board's manifest.py, frozen by MicroPython's own tools for the board's processor."""

import re
from pathlib import Path

import pytest

from slotmq_dev.emulator import frozen
from slotmq_tools import boards
from slotmq_tools.pack import mpy, packed

ROOT = Path(__file__).parents[2]
FOR_BOARDS = [name for name in boards.names() if boards.load(name).mpy_arch]
OURS = ("slotmq/", "slotmq_run/")
THEIRS = {"_boot.py", "asyncio/core.py"}  # of the stock image


def test_every_board_has_a_manifest() -> None:
    assert sorted(file.parent.name for file in ROOT.glob("boards/*/manifest.py")) == FOR_BOARDS


@pytest.mark.parametrize("name", FOR_BOARDS)
def test_it_freezes_broker_and_firmware_and_the_stock_modules(name: str, tmp_path: Path) -> None:
    text = frozen.content(name, tmp_path)
    found = frozen.modules(text)
    files = set(packed({name: file.read_text() for name, file in mpy.sources("slotmq").items()}))
    files |= {f"slotmq_run/{file.name}" for file in (ROOT / "firmware/slotmq_run").glob("*.py")}
    assert {file for file in found if file.startswith(OURS)} == files
    assert set(found) > files | THEIRS
    # Native code, compiled for the processor
    assert re.search("native code .*slotmq/viper.py", text)
