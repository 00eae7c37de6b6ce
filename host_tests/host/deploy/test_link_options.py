"""deploy's options of the network: what they take, which board and link can do it, what
network.json gets, and that a board keeps it."""

import json
from typing import Any

import pytest
from click.testing import CliRunner

from host_tests.host.deploy.fake_repl import HEADLINE, FakeRepl, deployed, order, probe
from slotmq_tools import boards
from slotmq_tools.cli import main
from slotmq_tools.deploy import board_files, steps
from slotmq_tools.deploy.link_options import LinkOptions
from slotmq_tools.errors import ToolError

FIXED = ("192.168.1.10", "255.255.255.0", "192.168.1.1", "192.168.1.1")
ALL = LinkOptions(FIXED, "DE", "wpa3", True)
WIRED = LinkOptions(FIXED, int_pin=5)


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch) -> FakeRepl:
    monkeypatch.setattr(board_files, "code", lambda *_: {"/lib/slotmq/core.mpy": b"new"})
    return FakeRepl([HEADLINE, "wifi home: up, 192.168.1.10"])


def station(more: LinkOptions | None = None) -> board_files.Network:
    return board_files.Network("station", "home", "a secret", more=more or LinkOptions())


def on(facts: boards.Board, board: FakeRepl, link: board_files.Network) -> list[str]:
    """Deploy to a board of that kind."""
    said: list[str] = []
    steps.deploy(order(board=facts, network=link), board, said.append)  # type: ignore[arg-type]
    return said


def network(board: FakeRepl) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(board.files["/network.json"])
    return facts


def made(*words: str, monkeypatch: pytest.MonkeyPatch) -> LinkOptions | str:
    """What the command makes of the words, or says of them."""
    seen: list[LinkOptions] = []

    def check_here(order: steps.Order) -> None:
        seen.append(order.network.more)
        raise ToolError("far enough")

    monkeypatch.setattr(steps, "check_here", check_here)
    start = ["deploy", "--port", "x", "--board", "RPI_PICO_W", "--wifi-ssid", "home"]
    done = CliRunner().invoke(main, [*start, *words], env={"SLOTMQ_WIFI_PASSWORD": "a secret"})
    return seen[0] if seen else done.output


class TestTheCommand:
    def test_what_is_said(self, monkeypatch: pytest.MonkeyPatch) -> None:
        fixed = ["--address", "192.168.1.10/24"]
        security = ["--country", "de", "--wifi-security", "wpa3", "--wifi-power-saving"]
        for words, found in (
            ([], LinkOptions()),
            (fixed, LinkOptions(FIXED)),
            ([*fixed, *security], ALL),
            (
                [*fixed, "--gateway", "192.168.1.254", "--dns", "9.9.9.9"],
                LinkOptions((*FIXED[:2], "192.168.1.254", "9.9.9.9")),
            ),
            (["--address", "", "--country", ""], LinkOptions((), "")),
            (["--wifi-security", "wpa2-wpa3"], LinkOptions(security="wpa2_wpa3")),
            (["--wifi-security", "wpa2"], LinkOptions(security="")),
            (["--no-wifi-power-saving"], LinkOptions(power_saving=False)),
            (["--int-pin", "7"], LinkOptions(int_pin=7)),
            (["--int-pin", "none"], LinkOptions(int_pin=None)),
        ):
            assert made(*words, monkeypatch=monkeypatch) == found

    @pytest.mark.parametrize(
        ("words", "why"),
        [
            (["--address", "192.168.1.10"], "as 192.168.1.10/24"),
            (["--address", "192.168.1.0/24"], "that is the network's own address"),
            (["--address", "shed/24"], "as 192.168.1.10/24"),
            (["--address", "192.168.1.1/24"], "--gateway 192.168.1.1, "),
            (
                ["--address", "192.168.1.2/24", "--gateway", "10.0.0.1"],
                "another one in 192.168.1.0/24",
            ),
            (["--gateway", "192.168.1.1"], "go with --address"),
            (["--dns", "9.9.9"], "expected an IPv4 address"),
            (["--country", "Germany"], "two letters"),
            (["--wifi-security", "wep"], "is not one of"),
            (["--int-pin", "99"], "the number of a GPIO"),
        ],
    )
    def test_what_is_none(
        self, words: list[str], why: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        said = made(*words, monkeypatch=monkeypatch)
        assert isinstance(said, str) and why in said


class TestBoardsAndLinks:
    @pytest.mark.parametrize(
        ("name", "link", "more", "why"),
        [
            ("ESP32_GENERIC", "station", LinkOptions(country="DE"), "--country: .* no country"),
            ("ESP32_GENERIC_S3", "station", LinkOptions(security="wpa3"), "WPA3 too"),
            ("RPI_PICO_W", "access_point", LinkOptions(security="wpa3"), "--wifi-security: only"),
            ("RPI_PICO_W", "access_point", LinkOptions(FIXED), "--address: only a client"),
            ("RPI_PICO_W", "station", LinkOptions(int_pin=21), "--int-pin: that is a W5500's"),
            ("RPI_PICO_W", "station", LinkOptions(int_pin=None), "--int-pin: that is a W5500's"),
            ("W5500_EVB_PICO", "ethernet", LinkOptions(power_saving=True), "that is of Wi-Fi"),
        ],
    )
    def test_what_it_cannot_do_is_refused(
        self, name: str, link: str, more: LinkOptions, why: str
    ) -> None:
        with pytest.raises(ToolError, match=why):
            more.check(link, boards.load(name))

    def test_what_it_can_is_not(self) -> None:
        ALL.check("station", boards.load("RPI_PICO_W"))
        LinkOptions(FIXED, power_saving=True).check("station", boards.load("ESP32_GENERIC_C3"))
        LinkOptions((), "", "", False).check("access_point", boards.load("ESP32_GENERIC"))
        WIRED.check("ethernet", boards.load("W5500_EVB_PICO"))

    def test_it_is_refused_before_the_board_is_asked(self) -> None:
        link = station(LinkOptions(country="DE"))
        with pytest.raises(ToolError, match="no country"):
            steps.check_here(order(board=boards.load("ESP32_GENERIC"), network=link))


@pytest.mark.usefixtures("tried")
class TestNetworkJson:
    def test_it_gets_them_and_keeps_them(self, board: FakeRepl) -> None:
        deployed(board, network=station(ALL))
        facts = network(board)
        wanted = {
            "address": list(FIXED),
            "country": "DE",
            "security": "wpa3",
            "power_saving": True,
        }
        assert facts.items() >= wanted.items()
        assert "int_pin" not in facts
        (kept,) = [line for line in deployed(board, network=station()) if line.startswith("kept")]
        options = "--address 192.168.1.10/24, --country DE, --wifi-security wpa3"
        assert kept.endswith(f"{options}, --wifi-power-saving"), kept
        assert network(board) == facts
        deployed(board, network=station(LinkOptions((), "", "", False)))
        assert not network(board).keys() & wanted.keys()

    def test_what_the_other_link_cannot_do_is_let_go(self, board: FakeRepl) -> None:
        deployed(board, network=station(ALL))
        deployed(board, network=board_files.Network("access_point", "mine", "long enough"))
        facts = network(board)
        assert facts["country"] == "DE" and facts["power_saving"]
        assert not facts.keys() & {"address", "security"}

    def test_a_w5500s_pin_may_be_none(self, board: FakeRepl) -> None:
        board.probe = probe(machine="W5500-EVB-Pico with RP2040")
        wired = boards.load("W5500_EVB_PICO")
        for pin in (5, None):
            more = LinkOptions(int_pin=pin)
            on(wired, board, board_files.Network("ethernet", more=more))
            assert network(board)["int_pin"] == pin
            said = on(wired, board, board_files.Network("ethernet"))
            assert any(f"--int-pin {pin or 'none'}" in line for line in said)
            assert network(board)["int_pin"] == pin

    def test_what_somebody_else_has_written_there_is_not_passed_on(self, board: FakeRepl) -> None:
        board.files["/network.json"] = (
            b'{"address": ["home", 1, 2, 3], "country": 7, "security": [], "power_saving": "no"}'
        )
        deployed(board, network=station())
        assert network(board).keys() == {"board", "link", "ssid", "password"}

    def test_a_name_that_an_esp32s_access_point_cannot_have_is_told(self, board: FakeRepl) -> None:
        board.probe = probe(machine="Generic ESP32 module with ESP32", mpy=0x2B06)
        esp32 = boards.load("ESP32_GENERIC")
        mine = board_files.Network("access_point", "mine", "long enough", "shed")
        said = on(esp32, board, mine)
        assert any("--hostname shed: an ESP32 with an access point" in line for line in said)


@pytest.mark.usefixtures("tried")
def test_safe_mode_is_told_at_once(board: FakeRepl) -> None:
    board.said = ["slotmq: safe mode: network.json: x", "slotmq: next start in 120 s"]
    with pytest.raises(ToolError, match="cannot use its network configuration"):
        deployed(board)
