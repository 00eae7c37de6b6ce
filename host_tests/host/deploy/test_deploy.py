"""What deploy checks, copies and says, with a board that is a dict of files."""

import json
from pathlib import Path
from typing import Any

import pytest

from host_tests.host.deploy.fake_repl import BOARD, HEADLINE, FakeRepl, deployed, order, probe
from slotmq_tools import boards
from slotmq_tools.deploy import backup, board_files, copying, repl, steps
from slotmq_tools.errors import ToolError


def test_it_copies_starts_and_tries_the_broker_where_it_is(tried: list[tuple[str, int]]) -> None:
    board = FakeRepl([HEADLINE, "wifi home: up, 192.168.1.7"])
    said = deployed(board)
    assert tried == [("192.168.1.7", 1884)]
    assert said[-1] == "192.168.1.7:1884: it answered"
    assert board.written[-1] == "/main.py"  # what starts is written last
    assert json.loads(board.files["/network.json"]) == {
        "board": BOARD,
        "link": "station",
        "ssid": "home",
        "password": "a secret",
    }
    assert not any("a secret" in line for line in said)


@pytest.mark.parametrize("name", [name for name in boards.names() if boards.load(name).mpy_arch])
def test_a_board_gets_what_its_region_needs_and_nothing_of_another(name: str) -> None:
    files = board_files.code(name, boards.load(name).mpy_arch)
    found = {path.removeprefix("/lib/slotmq_boards/") for path in files if "slotmq_boards" in path}
    own = {f"{name}/{each}.mpy" for each in ("limits", "region")}
    assert found == {"__init__.mpy", *own}


def test_only_what_changed_is_copied_and_what_is_old_removed(tried: list[object]) -> None:
    board = FakeRepl([HEADLINE, "wifi home: up, 192.168.1.7"])
    deployed(board)
    board.files["/lib/slotmq/old.mpy"] = b"of another version"
    board.files["/lib/mine.py"] = b"the user's"
    board.files["/slotmq.boots"] = b"++"
    board.written.clear()
    said = deployed(board, network=board_files.Network("station", "home", None))
    assert board.written == []
    assert "0 of" in said[2] and "1 removed" in said[2]
    assert {"/lib/slotmq/old.mpy", "/slotmq.boots"} & board.files.keys() == set()
    assert "/lib/mine.py" in board.files


def test_what_somebody_put_into_network_json_stays(tried: list[object]) -> None:
    board = FakeRepl([HEADLINE, "wifi home: up, 192.168.1.7"])
    board.files["/network.json"] = b'{"ssid": "home", "password": "kept", "led": 2, "pins": {}}'
    deployed(board, network=board_files.Network("station", "home", None))
    found = json.loads(board.files["/network.json"])
    assert (found["password"], found["led"], found["pins"]) == ("kept", 2, {})


def test_time_by_topic_takes_one_connection_more(tried: list[object]) -> None:
    board = FakeRepl([HEADLINE, "wifi home: up, 192.168.1.7"])
    network = board_files.Network("station", "home", "a secret", time="$SLOTMQ/time")
    deployed(board, network=network)
    assert b"limit connections 5\n" in board.files["/slotmq.conf"]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"name": "circuitpython"}, "the board runs circuitpython"),
        ({"version": (1, 24, 1)}, r"1\.24\.1.*1\.25 or later"),
        (
            {"machine": "Generic ESP32 module with ESP32"},
            "--board ESP32_GENERIC, or --force-board",
        ),
        ({"mpy": 4871}, "install another mpy-cross"),
        ({"heap": 120_000}, "messages take"),
        ({"flash": 20_000}, "--erase"),
        ({"drivers": ["WIZNET5K"]}, r"no network\.WLAN: .*--ethernet or --ppp"),
    ],
    ids=[
        "another Python",
        "too old",
        "another board",
        "another format",
        "heap",
        "flash",
        "driver",
    ],
)
def test_nothing_is_written_where_it_cannot_work(changes: Any, complaint: str) -> None:
    board = FakeRepl()
    board.probe = probe(**changes)
    with pytest.raises(ToolError, match=complaint):
        deployed(board)
    assert board.written == []
    assert board.resets == 1  # what ran before goes on


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ([], "says nothing of a broker: `slotmq logs`"),
        ([HEADLINE], "the network does not come up: check --wifi-ssid"),
        ([HEADLINE, "wifi home: wrong password; it is tried again"], "refuses the password"),
        (["MemoryError: x", 'Type "help()" for more information.'], "lower a limit"),
        (
            ["slotmq: safe mode: network.json: x", 'Type "help()" for more.'],
            "cannot use its network configuration",
        ),
        (["slotmq: oops", 'Type "help()" for more.'], "what the board said:\nslotmq: oops"),
    ],
)
def test_a_start_that_fails_is_explained(said: list[str], complaint: str) -> None:
    with pytest.raises(ToolError) as failed:
        deployed(FakeRepl(said))
    assert complaint in str(failed.value)
    assert "a secret" not in str(failed.value)


def test_nothing_is_erased_before_all_is_checked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tried: list[object]
) -> None:
    erased: list[str] = []

    def erase(_repl: FakeRepl, name: str, _stays: object) -> str:
        erased.append(name)
        return "all is gone"

    monkeypatch.setattr(backup, "erase", erase)
    conf = tmp_path / "slotmq.conf"
    conf.write_text("max_qos 7\n")
    board = FakeRepl([HEADLINE, "wifi home: up, 192.168.1.7"])
    with pytest.raises(ToolError, match="max_qos"):
        steps.deploy(order(conf=conf), board, print, True)  # type: ignore[arg-type]
    assert erased == board.written == []
    steps.deploy(order(), board, print, True)  # type: ignore[arg-type]
    assert erased == [BOARD]
    assert board.written


def test_the_password_of_another_network_is_not_known() -> None:
    board = FakeRepl()
    assert not copying.knows_password(board, "home")  # type: ignore[arg-type]
    board.files["/network.json"] = b'{"ssid": "home", "password": "kept"}'
    assert copying.knows_password(board, "home")  # type: ignore[arg-type]
    assert not copying.knows_password(board, "other")  # type: ignore[arg-type]


def test_a_password_that_nobody_knows_is_an_error_where_nobody_can_be_asked() -> None:
    with pytest.raises(ToolError, match="--wifi-password-file"):
        deployed(FakeRepl(), network=board_files.Network("station", "home", None))


def test_a_configuration_that_cannot_be_used_does_not_reach_the_board(tmp_path: Path) -> None:
    conf = tmp_path / "slotmq.conf"
    conf.write_text("listener 1883\nmax_qos 7\n")
    board = FakeRepl()
    with pytest.raises(ToolError, match=r"slotmq\.conf:2: max_qos: .*would not start with it"):
        deployed(board, conf=conf)
    assert board.written == []


def test_the_password_is_in_no_text_about_the_network() -> None:
    assert "a secret" not in repr(order())


def test_no_board_and_several(monkeypatch: pytest.MonkeyPatch) -> None:
    class Port:
        def __init__(self, device: str, vid: int | None) -> None:
            self.device, self.vid = device, vid

    ports = [Port("/dev/ttyS0", None)]
    monkeypatch.setattr("serial.tools.list_ports.comports", lambda: ports)
    with pytest.raises(ToolError, match="no board is plugged in"):
        repl.find(None)
    ports.append(Port("/dev/ttyACM0", 1))
    assert repl.find(None) == "/dev/ttyACM0"
    ports.append(Port("/dev/ttyACM1", 1))
    with pytest.raises(ToolError, match=r"several boards.*--port /dev/ttyACM0"):
        repl.find(None)
    assert repl.find("/dev/mine") == "/dev/mine"


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (OSError("[Errno 13] Permission denied: x"), "dialout"),
        (OSError("device or resource busy"), "close the other program"),
        (OSError("No such file"), "is the board plugged in?"),
    ],
)
def test_a_port_that_cannot_be_opened(
    error: OSError, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(repl, "SerialTransport", fails)
    with pytest.raises(ToolError, match=advice.replace("?", r"\?")):
        repl.Repl("/dev/ttyACM0")
    monkeypatch.setattr("serial.serial_for_url", fails)
    with pytest.raises(ToolError, match=advice.replace("?", r"\?")):
        repl.Listener("/dev/ttyACM0")
