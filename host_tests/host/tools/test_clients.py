"""`make clients`: the linked mosquitto_pub and mosquitto_sub work."""

import subprocess
import sys
from pathlib import Path

import pytest

from slotmq_dev import clients
from slotmq_dev.peers import mosquitto
from slotmq_tools.errors import ToolError
from slotmq_tools.ports import free_port

from ...support.program import Start


def test_a_published_message_is_received(
    start: Start,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["clients", str(tmp_path)])
    assert clients.main() == 0
    publish, subscribe = capsys.readouterr().out.splitlines()
    port = free_port()
    run = start("-p", port)
    run.headline()
    own = ["-p", str(port), "-t", "room/1/a b"]
    subprocess.run([publish, *own, "-m", "21.5", "-r"], check=True)
    received = subprocess.check_output([subscribe, *own, "-v", "-C", "1", "-W", "20"], text=True)
    assert received == "room/1/a b 21.5\n"
    run.stop()


def test_an_error_of_the_fetch_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse() -> list[str]:
        raise ToolError("no mirror")

    monkeypatch.setattr(sys, "argv", ["clients", str(tmp_path)])
    monkeypatch.setattr(mosquitto, "publish", refuse)
    assert clients.main() == 1
    assert capsys.readouterr().err == "slotmq: no mirror\n"
    assert not list(tmp_path.iterdir())
