"""Ports for processes that are about to start: free, and not the kernel's to give away."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from slotmq_tools import ports

KERNELS = Path("/proc/sys/net/ipv4/ip_local_port_range")


def test_a_port_that_somebody_listens_on_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server((ports.LOOPBACK, 0)) as server:
        taken, free = server.getsockname()[1], ports.free_port()
        os.close(ports._reserved.pop())
        monkeypatch.setattr(ports, "RANGE", [taken, free])
        assert ports.free_port() == free


def test_where_all_are_taken_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server((ports.LOOPBACK, 0)) as server:
        monkeypatch.setattr(ports, "RANGE", [server.getsockname()[1]])
        with pytest.raises(OSError, match="100 ports"):
            ports.free_port()


def test_no_other_process_is_given_it_before_its_listener_comes() -> None:
    ask = "from slotmq_tools import ports; ports.RANGE = [{}]; ports.free_port()"
    port = ports.free_port()
    other = subprocess.run([sys.executable, "-c", ask.format(port)], stderr=subprocess.PIPE)
    assert other.returncode == 1 and b"none of 100 ports" in other.stderr


def test_no_client_can_get_it_meanwhile() -> None:
    first = int(KERNELS.read_text().split()[0]) if KERNELS.exists() else 49_152
    assert {ports.free_port() < first for _ in range(50)} == {True}
    with socket.create_server((ports.LOOPBACK, 0)) as server:  # what it was before
        assert server.getsockname()[1] >= first
