"""The journal that the pages of a Pico W and of a W5500 board offer, with the firmware."""

from contextlib import closing
from pathlib import Path

import pytest

from slotmq_tools import boards
from slotmq_tools.deploy import steps

from .test_boards import HEAPS
from .test_presets import Deployed

BOARDS = Path(__file__).parents[3] / "boards"
CLIENTS = 4


def offered(name: str) -> str:
    """The page's lines."""
    _, _, behind = (BOARDS / name / "README.md").read_text().partition("```conf\n")
    return behind.partition("```")[0]


@pytest.mark.parametrize("time", ["", "127.0.0.1"])
@pytest.mark.parametrize("name", ["RPI_PICO_W", "W5500_EVB_PICO"])
def test_it_fits_and_serves_every_client(name: str, time: str, tmp_path: Path) -> None:
    text = offered(name)
    assert text.startswith("persistence true\n")
    conf = tmp_path / "offered.conf"
    conf.write_text(f"listener 1883\nallow_anonymous true\n{text}")
    assert steps.heap_needed(boards.load(name), conf, clock=bool(time))[0] <= HEAPS[name]
    (tmp_path / "j").mkdir()
    text += f"persistence_location {tmp_path}/j/\n"
    with closing(Deployed(name, tmp_path, text, time)) as board:
        board.serves(CLIENTS)
