"""What deploy says about a start, by the lines that the board prints."""

from typing import Any

import pytest

from host_tests.host.deploy.fake_repl import HEADLINE, FakeRepl
from slotmq_tools.deploy import mqtt_client, startup
from slotmq_tools.deploy.network import Network
from slotmq_tools.errors import ToolError

PROMPT = 'Type "help()" for more information.'


@pytest.mark.parametrize(
    ("printed", "advice"),
    [
        ([], "`slotmq logs`"),
        ([HEADLINE, "wifi home: wrong password; it is tried again"], "--wifi-password-file"),
        (["MemoryError: x", PROMPT], "lower a limit"),
        (["slotmq: safe mode: network.json: x", "slotmq: next start in 120 s"], "network.json"),
        (['File "app.py", line 1, in <module> ImportError: x', PROMPT], "--app FILE"),
        (["slotmq: oops", PROMPT], "did not start.*\nslotmq: oops"),
    ],
)
def test_a_failed_start_gets_advice(printed: list[str], advice: str) -> None:
    board: Any = FakeRepl(printed)
    network = Network("station", "home")
    with pytest.raises(ToolError, match=advice) as failed:
        startup.wait_for_broker(board, network, mqtt_client.Login(), None, print)
    assert ("--app" in str(failed.value)) == (advice == "--app FILE")


@pytest.mark.parametrize(
    ("link", "advice"),
    [
        ("station", "--wifi-ssid and the password"),
        ("access_point", "`slotmq logs`"),
        ("ethernet", "cable"),
        ("ppp", "UART"),
    ],
)
def test_each_link_that_does_not_come_up_has_its_own_advice(link: str, advice: str) -> None:
    board: Any = FakeRepl([HEADLINE])
    with pytest.raises(ToolError, match=f"broker runs.*network.*{advice}") as failed:
        startup.wait_for_broker(board, Network(link, "home"), mqtt_client.Login(), None, print)
    assert ("--wifi-ssid" in str(failed.value)) == (link == "station")
