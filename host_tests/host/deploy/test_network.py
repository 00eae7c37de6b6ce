"""network.json: options, their values, what supports them, and what is kept of the present one."""

import json
from typing import Any

import pytest
from click.testing import CliRunner

from host_tests.host.deploy.fake_repl import HEADLINE, HOME_AGAIN, FakeRepl, deployed, order, probe
from slotmq_tools import boards
from slotmq_tools.cli import main
from slotmq_tools.deploy import copying, steps
from slotmq_tools.deploy.link_options import LinkOptions
from slotmq_tools.deploy.network import Network
from slotmq_tools.errors import ToolError

# network.json: values that are refused, and what is taken from the board's present one.


pytestmark = pytest.mark.usefixtures("one_module")


@pytest.mark.parametrize("password", ["short", "x" * 64, "längerer Text", "with\ttabulator"])
@pytest.mark.parametrize("link", ["station", "access_point"])
def test_a_password_that_wpa2_does_not_allow_is_refused(link: str, password: str) -> None:
    board = FakeRepl()
    with pytest.raises(ToolError, match="8 to 63 ") as refused:
        deployed(board, network=Network(link, "home", password))
    assert password not in str(refused.value)
    assert board.written == []


@pytest.mark.parametrize("password", ["", "12345678", "~" * 63, "0123456789abcdef" * 4])
def test_a_wpa2_password_or_key_is_accepted(password: str) -> None:
    Network("station", "home", password).check()


REFUSED = (
    *(
        (Network("access_point", s, "long enough"), "1 to 32 bytes")
        for s in ("", "x" * 33, "ü" * 17)
    ),
    *(
        (Network("ethernet", hostname=name), r"--hostname .*32 letters")
        for name in ("x" * 33, "two words", "schön")
    ),
    (Network("ethernet", time="$SYS/time"), r"--time .*'\$SLOTMQ/time'"),
)


@pytest.mark.parametrize(("network", "why"), REFUSED)
def test_wrong_values_are_refused(network: Network, why: str) -> None:
    with pytest.raises(ToolError, match=why):
        network.check()
    Network("ethernet", hostname="x" * 32).check()


def test_a_password_is_that_of_one_network() -> None:
    board = FakeRepl()
    assert not copying.has_password(board, "home")  # type: ignore[arg-type]
    board.files["/network.json"] = b'{"ssid": "home", "password": "kept"}'
    assert copying.has_password(board, "home")  # type: ignore[arg-type]
    assert not copying.has_password(board, "other")  # type: ignore[arg-type]


@pytest.mark.usefixtures("tested")
class TestPresentNetworkJson:
    def test_password_and_edited_entries_are_reused(self) -> None:
        board = FakeRepl()
        board.files["/network.json"] = (
            b'{"ssid": "home", "password": "kept", "led": 2, "pins": {}}'
        )
        deployed(board, network=HOME_AGAIN)
        found = json.loads(board.files["/network.json"])
        assert (found["password"], found["led"], found["pins"]) == ("kept", 2, {})

    @pytest.mark.parametrize("text", [b"[]", b"5", b'"x"', b"null", b"{", b"\xff"])
    def test_one_that_is_no_json_object_is_replaced(self, text: bytes) -> None:
        board = FakeRepl()
        board.files["/network.json"] = text
        deployed(board)
        assert b'"password": "a secret"' in board.files["/network.json"]


def test_the_boards_own_access_point_is_tested_only_at_a_given_address(
    tested: list[tuple[str, int]],
) -> None:
    board = FakeRepl([HEADLINE, "access point shed: up, 192.168.4.1"])
    network = Network("access_point", "shed", "long enough")
    lines = deployed(board, network=network)
    assert "`slotmq status 192.168.4.1:1884`" in lines[-1]
    assert tested == []
    deployed(board, network=network, address=("10.0.0.9", 1883))
    assert tested == [("10.0.0.9", 1883)]


# deploy's network options: their values, which board and link supports them, and network.json.


FIXED = ("192.168.1.10", "255.255.255.0", "192.168.1.1", "192.168.1.1")
ALL = LinkOptions(FIXED, "DE", "wpa3", True)
WIRED = LinkOptions(FIXED, int_pin=5)


@pytest.fixture
def board() -> FakeRepl:
    return FakeRepl()


def station(options: LinkOptions) -> Network:
    return Network("station", "home", "a secret", options=options)


def entries(board: FakeRepl) -> dict[str, Any]:
    """Of its network.json."""
    found: dict[str, Any] = json.loads(board.files["/network.json"])
    return found


def parsed(words: list[str], monkeypatch: pytest.MonkeyPatch) -> LinkOptions | str:
    """The options that the command reads from the words, or its error."""
    seen: list[LinkOptions] = []

    def check_offline(order: steps.Order) -> None:
        seen.append(order.network.options)
        raise ToolError("stop here")

    monkeypatch.setattr(steps, "check_offline", check_offline)
    start = ["deploy", "--port", "x", "--board", "RPI_PICO_W", "--wifi-ssid", "home"]
    done = CliRunner().invoke(main, [*start, *words], env={"SLOTMQ_WIFI_PASSWORD": "a secret"})
    return seen[0] if seen else done.output


class TestCommandLine:
    def test_valid_values(self, monkeypatch: pytest.MonkeyPatch) -> None:
        fixed = ["--address", "192.168.1.10/24"]
        security = ["--country", "de", "--wifi-security", "wpa3", "--wifi-power-saving"]
        for words, expected in (
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
            assert parsed(words, monkeypatch) == expected

    @pytest.mark.parametrize(
        ("words", "why"),
        [
            (["--address", "192.168.1.10"], "such as 192.168.1.10/24"),
            (["--address", "192.168.1.0/24"], "192.168.1.0/24: "),
            (["--address", "shed/24"], "such as 192.168.1.10/24"),
            (["--address", "192.168.1.1/24"], "--gateway 192.168.1.1 "),
            (
                ["--address", "192.168.1.2/24", "--gateway", "10.0.0.1"],
                "--gateway 10.0.0.1 ",
            ),
            (["--gateway", "192.168.1.1"], "--gateway and --dns"),
            (["--dns", "9.9.9"], "9.9.9: expected an IPv4 address"),
            (["--country", "Germany"], "Germany: "),
            (["--wifi-security", "wep"], "--wifi-security"),
            (["--int-pin", "99"], "99: expected a GPIO"),
        ],
    )
    def test_invalid_values_are_refused(
        self, words: list[str], why: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        error = parsed(words, monkeypatch)
        assert isinstance(error, str) and why in error


class TestBoardsAndLinks:
    @pytest.mark.parametrize(
        ("name", "link", "more", "why"),
        [
            ("ESP32_GENERIC", "station", LinkOptions(country="DE"), "--country: "),
            (
                "ESP32_GENERIC_S3",
                "station",
                LinkOptions(security="wpa3"),
                "--wifi-security: ",
            ),
            (
                "RPI_PICO_W",
                "access_point",
                LinkOptions(security="wpa3"),
                "--wifi-security: ",
            ),
            ("RPI_PICO_W", "access_point", LinkOptions(FIXED), "--address: "),
            ("RPI_PICO_W", "station", LinkOptions(int_pin=21), "--int-pin: .*W5500"),
            ("RPI_PICO_W", "station", LinkOptions(int_pin=None), "--int-pin: .*W5500"),
            (
                "W5500_EVB_PICO",
                "ethernet",
                LinkOptions(power_saving=True),
                "--wifi-power-saving: ",
            ),
        ],
    )
    def test_an_unsupported_option_is_refused(
        self, name: str, link: str, more: LinkOptions, why: str
    ) -> None:
        with pytest.raises(ToolError, match=why):
            more.check(link, boards.load(name))

    def test_supported_options_are_accepted(self) -> None:
        ALL.check("station", boards.load("RPI_PICO_W"))
        LinkOptions(FIXED, power_saving=True).check("station", boards.load("ESP32_GENERIC_C3"))
        LinkOptions((), "", "", False).check("access_point", boards.load("ESP32_GENERIC"))
        WIRED.check("ethernet", boards.load("W5500_EVB_PICO"))

    def test_it_is_refused_before_the_board_is_stopped(self) -> None:
        link = station(LinkOptions(country="DE"))
        with pytest.raises(ToolError, match="--country: "):
            steps.check_offline(order(board=boards.load("ESP32_GENERIC"), network=link))


@pytest.mark.usefixtures("tested", "one_module")
class TestNetworkJson:
    def test_options_are_written_and_kept_by_the_next_deploy(self, board: FakeRepl) -> None:
        deployed(board, network=station(ALL))
        first = entries(board)
        wanted = {
            "address": list(FIXED),
            "country": "DE",
            "security": "wpa3",
            "power_saving": True,
        }
        assert first.items() >= wanted.items()
        assert "int_pin" not in first
        (kept,) = [line for line in deployed(board, network=HOME_AGAIN) if line.startswith("kept")]
        options = "--address 192.168.1.10/24, --country DE, --wifi-security wpa3"
        assert kept.endswith(f"{options}, --wifi-power-saving"), kept
        assert entries(board) == first
        deployed(board, network=station(LinkOptions((), "", "", False)))
        assert not entries(board).keys() & wanted.keys()

    def test_options_that_a_new_link_does_not_support_are_removed(self, board: FakeRepl) -> None:
        deployed(board, network=station(ALL))
        deployed(board, network=Network("access_point", "mine", "long enough"))
        found = entries(board)
        assert found["country"] == "DE" and found["power_saving"]
        assert not found.keys() & {"address", "security"}

    @pytest.mark.parametrize("pin", [5, None])
    def test_the_int_pin_is_kept_even_if_there_is_none(
        self, pin: int | None, board: FakeRepl
    ) -> None:
        board.probe = probe(machine="W5500-EVB-Pico with RP2040")
        model = boards.load("W5500_EVB_PICO")
        network = Network("ethernet", options=LinkOptions(int_pin=pin))
        deployed(board, board=model, network=network)
        assert entries(board)["int_pin"] == pin
        lines = deployed(board, board=model, network=Network("ethernet"))
        assert any(f"--int-pin {pin or 'none'}" in line for line in lines)
        assert entries(board)["int_pin"] == pin

    def test_entries_of_a_wrong_type_are_dropped(self, board: FakeRepl) -> None:
        board.files["/network.json"] = (
            b'{"address": ["home", 1, 2, 3], "country": 7, "security": [], "power_saving": "no",'
            b' "hostname": ["shed"], "time": 7, "led": 2}'
        )
        deployed(board)
        assert entries(board).keys() == {"board", "link", "ssid", "password", "led"}

    def test_a_host_name_on_an_esp32s_access_point_gets_a_warning(self, board: FakeRepl) -> None:
        board.probe = probe(machine="Generic ESP32 module with ESP32", mpy=0x2B06)
        network = Network("access_point", "mine", "long enough", "shed")
        lines = deployed(board, board=boards.load("ESP32_GENERIC"), network=network)
        assert any("--hostname shed" in line and "ESP32" in line for line in lines)
