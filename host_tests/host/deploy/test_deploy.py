"""A whole deploy: what is checked first, written, reused and printed."""

import json
from typing import Any

import pytest

from host_tests.host.deploy.fake_repl import (
    BOARD,
    HEADLINE,
    HOME_AGAIN,
    FakeRepl,
    deployed,
    order,
    probe,
)
from slotmq_tools import boards
from slotmq_tools.deploy import board_files
from slotmq_tools.errors import ToolError


def test_the_broker_is_copied_started_and_tested(tested: list[tuple[str, int]]) -> None:
    board = FakeRepl()
    lines = deployed(board)
    assert tested == [("192.168.1.7", 1884)]
    assert lines[-1] == "192.168.1.7:1884: it answered"
    assert board.written[-1] == "/main.py"  # the file that starts the program is written last
    assert json.loads(board.files["/network.json"]) == {
        "board": BOARD,
        "link": "station",
        "ssid": "home",
        "password": "a secret",
    }
    assert not any("a secret" in line for line in lines)


@pytest.mark.parametrize("name", [name for name in boards.names() if boards.load(name).mpy_arch])
def test_a_board_gets_its_own_limits_and_region_only(name: str) -> None:
    files = board_files.code(name, boards.load(name).mpy_arch)
    found = {path.removeprefix("/lib/slotmq_boards/") for path in files if "slotmq_boards" in path}
    assert found == {"__init__.mpy", f"{name}/limits.mpy", f"{name}/region.mpy"}


@pytest.mark.usefixtures("tested")
def test_only_changed_files_are_written_and_obsolete_ones_removed() -> None:
    board = FakeRepl()
    deployed(board)
    board.files["/lib/slotmq/old.mpy"] = b"of another version"
    board.files["/lib/mine.py"] = b"the user's"
    board.files["/slotmq.boots"] = b"++"
    board.written.clear()
    lines = deployed(board, network=HOME_AGAIN)
    assert board.written == []
    assert any("0 of" in line and "1 removed" in line for line in lines)
    assert not {"/lib/slotmq/old.mpy", "/slotmq.boots"} & board.files.keys()
    assert "/lib/mine.py" in board.files


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"name": "circuitpython"}, "circuitpython"),
        ({"version": (1, 24, 1)}, r"1\.24\.1.*1\.25 or later"),
        ({"machine": "Generic ESP32 module with ESP32"}, "--board ESP32_GENERIC, .*--force-board"),
        ({"mpy": 4871}, "mpy-cross"),
        ({"heap": 120_000}, "120,000 .*messages take"),
        ({"flash": 20_000}, "20,000 .*--erase"),
        ({"drivers": ["WIZNET5K"]}, r"network\.WLAN: .*--ethernet or --ppp"),
    ],
    ids=["Python", "version", "board", "mpy format", "heap", "flash", "driver"],
)
def test_an_unsuitable_board_is_left_unchanged_and_reset(changes: Any, complaint: str) -> None:
    board = FakeRepl()
    board.probe = probe(**changes)
    with pytest.raises(ToolError, match=complaint):
        deployed(board)
    assert board.written == []
    assert board.resets == 1


def test_passwords_are_in_no_repr_and_no_error() -> None:
    assert "a secret" not in repr(order())
    with pytest.raises(ToolError) as failed:
        deployed(FakeRepl([HEADLINE, "wifi home: wrong password; it is tried again"]))
    assert "a secret" not in str(failed.value)


@pytest.mark.parametrize("method", ["hashes", "sizes"])
def test_ctrl_c_before_the_first_change_resets_the_board(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    board = FakeRepl()
    board.probe = probe(flash=0)
    monkeypatch.setattr(board, method, interrupted)
    with pytest.raises(KeyboardInterrupt):
        deployed(board)
    assert board.files == {}
    assert board.resets == 1


def test_ctrl_c_during_a_write_asks_for_another_deploy(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_path: str, _content: bytes) -> None:
        raise KeyboardInterrupt

    board = FakeRepl()
    monkeypatch.setattr(board, "write", interrupted)
    with pytest.raises(ToolError, match="deploy again"):
        deployed(board)


class TestModels:
    MACHINES = (
        ("RPI_PICO_W", "Raspberry Pi Pico W with RP2040"),
        ("RPI_PICO2_W", "Raspberry Pi Pico 2 W with RP2350"),
        ("W5500_EVB_PICO", "W5500-EVB-Pico with RP2040"),
        ("ESP32_GENERIC", "Generic ESP32 module with SPIRAM with ESP32"),
        ("ESP32_GENERIC_C3", "ESP32C3 module with ESP32C3"),
        ("ESP32_GENERIC_S3", "Generic ESP32S3 module with Octal-SPIRAM with ESP32-S3"),
    )

    @pytest.mark.parametrize(("name", "machine"), MACHINES)
    def test_each_is_recognized_by_sys_implementation(self, name: str, machine: str) -> None:
        assert boards.matching(machine) == [name]

    def test_the_list_above_is_complete(self) -> None:
        found = [name for name in boards.names() if boards.load(name).machines]
        assert found == sorted(name for name, _ in self.MACHINES)

    def test_another_model_with_the_same_processor_is_refused(self) -> None:
        board = FakeRepl()
        with pytest.raises(ToolError, match="RP2040, not W5500_EVB_PICO"):
            deployed(board, board=boards.load("W5500_EVB_PICO"))
        assert board.written == []

    def test_an_unknown_model_needs_force_board(self, tested: list[object]) -> None:
        board = FakeRepl()
        board.probe = probe(machine="Somebody's board with RP2040")
        with pytest.raises(ToolError, match="--force-board"):
            deployed(board)
        deployed(board, force=True)
        assert tested

    def test_another_processor_is_refused_even_then(self) -> None:
        board = FakeRepl()
        board.probe = probe(machine="Somebody's board with RP2350", mpy=7942)
        with pytest.raises(ToolError, match=r"armv7emsp .*RPI_PICO_W .*armv6m"):
            deployed(board, force=True)
