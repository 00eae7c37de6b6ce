"""The two configurations with a journal that the page of an ESP32 without PSRAM offers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from host_tests.wire import codec
from host_tests.wire.client import Client

from .test_boards import Board

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "boards" / "ESP32_GENERIC" / "README.md").read_text()
# Their clients: as the page says
CLIENTS = {"without version 5": 7, "with version 5": 4}


def configuration(at: int, folder: Path) -> Path:
    text = PAGE.split("```conf\n")[at + 1].partition("```")[0]
    assert text.startswith("persistence true\npersistence_location /\n")
    (folder / "j").mkdir(exist_ok=True)
    path = folder / "slotmq.conf"
    path.write_text("allow_anonymous true\n" + text.replace(" /\n", f" {folder}/j/\n"))
    return path


class Keeping(Board):
    def __init__(self, at: int, folder: Path) -> None:
        self.at = at
        self.most = list(CLIENTS.values())[at]
        (folder / "lib").unlink(missing_ok=True)
        super().__init__("ESP32_GENERIC", folder, "-c", str(configuration(at, folder)))


@pytest.fixture(params=range(len(CLIENTS)), ids=list(CLIENTS))
def board(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Keeping]:
    running = Keeping(request.param, tmp_path)
    yield running
    running.close()


def test_it_serves_every_qos_to_every_client(board: Keeping) -> None:
    board.serves(board.most)


def test_what_it_keeps_is_there_after_a_kill(board: Keeping, tmp_path: Path) -> None:
    kept = Client(board.address)
    board.clients.append(kept)
    assert kept.connect(codec.connect("kept", clean=False)).code == 0
    kept.subscribe("room/+", qos=2)
    kept.sock.close()
    publisher = board.connect("publisher")
    for qos in (1, 2):
        publisher.publish(f"room/{qos}", b"%d" % qos, qos, retain=True)
    board.close()
    again = Keeping(board.at, tmp_path)
    try:
        kept = Client(again.address)
        again.clients.append(kept)
        connack = kept.connect(codec.connect("kept", clean=False))
        assert (connack.code, connack.session_present) == (0, True)
        for qos in (1, 2):
            kept.receive(f"room/{qos}", b"%d" % qos, qos)
    finally:
        again.close()
