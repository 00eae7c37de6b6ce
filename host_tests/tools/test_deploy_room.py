"""deploy's check of the heap, by what the configuration asks for. What its figures are worth is
measured in host_tests/heap/test_firmware.py."""

import pytest

from host_tests.tools.fake_repl import BOARD, HEADLINE, FakeRepl, deployed, probe
from slotmq_tools import boards
from slotmq_tools.deploy import configuration, payload, room
from slotmq_tools.errors import ToolError

NAMES = [name for name in boards.names() if boards.load(name).mpy_arch]
FROZEN = ("slotmq", "slotmq_run")


def need(name: str, *lines: str, frozen: tuple[str, ...] = (), clock: bool = False) -> int:
    text = "\n".join(["listener 1883", "allow_anonymous true", *lines])
    conf = configuration.make(configuration.Source("x", text.encode()), name)
    return room.needed(boards.load(name), conf, frozen, clock)[0]


@pytest.mark.parametrize("name", NAMES)
def test_a_journal_a_recorder_and_a_clock_take_more_and_version_3_less(name: str) -> None:
    left = boards.load(name).tables_bytes
    plain = need(name)
    assert need(name, "persistence true") - plain > left[""] - left["kept"] > 0
    assert need(name, "record #") > plain
    assert need(name, "record #", "persistence true") > need(name, "persistence true")
    assert plain > need(name, "mqtt_versions 3")
    assert need(name, clock=True) > plain


@pytest.mark.parametrize("name", NAMES)
def test_so_they_do_where_the_code_is_in_the_firmware(name: str) -> None:
    plain = need(name, frozen=FROZEN)
    assert need(name, "persistence true", frozen=FROZEN) > plain
    assert need(name, "record #", frozen=FROZEN) > plain
    rows = room.tables(
        configuration.make(configuration.Source("x", b"listener 1\nmqtt_versions 3\n"), name)
    )
    tables = sum(row[1] for row in rows)  # and that code takes no heap that would be free
    assert need(name, "mqtt_versions 3", frozen=FROZEN) > tables + 40_000


@pytest.mark.usefixtures("tried")
def test_a_journal_for_which_there_is_no_room_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payload, "code", lambda *_: {"/lib/slotmq/core.mpy": b"new"})
    board = FakeRepl([HEADLINE, "wifi home: up, 192.168.1.7"])
    board.probe = probe(heap=need(BOARD))
    deployed(board)
    board.files["/slotmq.conf"] += b"persistence true\n"
    with pytest.raises(ToolError, match=r"are needed: .* Lower a limit in the configuration"):
        deployed(board)
    board.files["/slotmq.conf"] += b"mqtt_versions 3\n"
    deployed(board)
