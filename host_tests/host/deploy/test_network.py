"""network.json: values that are refused, and what is taken from the board's present one."""

import json

import pytest

from host_tests.host.deploy.fake_repl import HEADLINE, HOME_AGAIN, FakeRepl, deployed
from slotmq_tools.deploy import copying
from slotmq_tools.deploy.network import Network
from slotmq_tools.errors import ToolError

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


@pytest.mark.parametrize("ssid", ["", "x" * 33, "ü" * 17])
def test_an_ssid_of_a_wrong_length_is_refused(ssid: str) -> None:
    with pytest.raises(ToolError, match="1 to 32 bytes"):
        Network("access_point", ssid, "long enough").check()


@pytest.mark.parametrize("name", ["x" * 33, "two words", "schön"])
def test_a_wrong_host_name_is_refused(name: str) -> None:
    with pytest.raises(ToolError, match=r"--hostname .*32 letters"):
        Network("ethernet", hostname=name).check()
    Network("ethernet", hostname="x" * 32).check()


def test_a_time_source_that_is_another_topic_is_refused() -> None:
    with pytest.raises(ToolError, match=r"--time .*'\$SLOTMQ/time'"):
        Network("ethernet", time="$SYS/time").check()


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

    def test_entries_of_a_wrong_type_are_dropped(self) -> None:
        board = FakeRepl()
        board.files["/network.json"] = b'{"hostname": ["shed"], "time": 7, "led": 2}'
        deployed(board)
        found = json.loads(board.files["/network.json"])
        assert found.keys() == {"board", "link", "ssid", "password", "led"}


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
