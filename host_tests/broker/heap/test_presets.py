"""Each board's preset, and the journal that its page offers, with all that `slotmq deploy`
installs beside the broker, in the heap that board.json states: an ESP32 without PSRAM has that
much before its heap grows."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from slotmq_tools import boards
from slotmq_tools.deploy import steps
from slotmq_tools.pack import mpy

from .test_boards import HEAPS, Board, heap_of

FIRMWARE = Path(__file__).parents[3] / "firmware"


class Deployed(Board):
    """The firmware's main.py, with its module for Wi-Fi, and the one for the clock if wanted."""

    def __init__(
        self, name: str, folder: Path, conf: str = "", time: str = "", heap: int = 0
    ) -> None:
        self.conf, self.time = conf, time
        super().__init__(name, folder, heap=heap)

    def program(self, name: str, folder: Path, *_: str) -> list[str]:
        for source in (FIRMWARE / "slotmq_run").glob("*.py"):
            mpy.compile_file(source, f"slotmq_run/{source.name}", folder)
        listener = "listener {1} {0}\nallow_anonymous true\n".format(*self.address)
        (folder / "slotmq.conf").write_text(listener + self.conf)
        network = {"board": name, "link": "host", "time": self.time}
        (folder / "network.json").write_text(json.dumps(network))
        main = "import slotmq_run.station\n" + (FIRMWARE / "main.py").read_text()
        (folder / "main.py").write_text(main)
        return ["main.py"]


@pytest.fixture(params=HEAPS)
def board(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Deployed]:
    running = Deployed(request.param, tmp_path)
    yield running
    running.close()


@pytest.mark.parametrize("name", HEAPS)
def test_deploy_accepts_it(name: str) -> None:
    assert steps.heap_needed(boards.load(name), None)[0] <= HEAPS[name]


def test_it_serves_every_qos_to_every_client(board: Deployed) -> None:
    board.serves(board.limits.connections)


def test_clients_of_version_5_connect_while_sys_is_published(board: Deployed) -> None:
    board.serves_sys(board.limits.connections)


@pytest.mark.parametrize("name", HEAPS)
def test_with_a_clock_as_well(name: str, tmp_path: Path) -> None:
    """In all of the heap that board.json states: an ESP32's 112,000 bytes are 112 KB less the
    collector's own tables, which count here."""
    heap = heap_of(name) - HEAPS[name] + boards.load(name).heap_kb * 1024
    with closing(Deployed(name, tmp_path, time="127.0.0.1", heap=heap)) as board:
        board.serves(board.limits.connections)


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
