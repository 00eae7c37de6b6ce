"""free_port(): the port is free, is not given twice, and is no ephemeral port."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from slotmq_tools import ports

EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")


def test_a_port_in_use_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server((ports.LOOPBACK, 0)) as server:
        taken, free = server.getsockname()[1], ports.free_port()
        os.close(ports._reserved.pop())
        monkeypatch.setattr(ports, "RANGE", [taken, free])
        assert ports.free_port() == free


def test_an_error_if_no_port_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server((ports.LOOPBACK, 0)) as server:
        monkeypatch.setattr(ports, "RANGE", [server.getsockname()[1]])
        with pytest.raises(OSError, match="100 ports"):
            ports.free_port()


def test_no_other_process_is_given_the_same_port() -> None:
    ask = "from slotmq_tools import ports; ports.RANGE = [{}]; ports.free_port()"
    port = ports.free_port()
    other = subprocess.run([sys.executable, "-c", ask.format(port)], stderr=subprocess.PIPE)
    assert other.returncode == 1 and b"none of 100 ports" in other.stderr


def test_it_is_below_the_ephemeral_ports() -> None:
    first = int(EPHEMERAL.read_text().split()[0]) if EPHEMERAL.exists() else 49_152
    assert {ports.free_port() < first for _ in range(50)} == {True}
    with socket.create_server((ports.LOOPBACK, 0)) as server:  # port 0 gives one
        assert server.getsockname()[1] >= first
