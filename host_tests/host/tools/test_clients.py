"""`make clients`: the linked mosquitto_pub and mosquitto_sub work."""

import subprocess
import sys
from pathlib import Path

import pytest

from slotmq_dev import clients
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
