"""What attackers have found once would be found again: of each kind a fault is planted in a copy
of the broker, and the test that is named fails."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ..sim import campaign
from ..sim.planted import LIB, plant
from ..sim.planted.faults import Fault, Planted

HERE = "host_tests/broker"
TIMEOUT_S = 100
FAULTS = (
    Planted(Fault("a publisher writes what other clients take for packets", "v5/large_messages.py",
        "    set_chunked(conns, conn, source.msg, 0, packet_id)",
        "    set_chunked(conns, conn, source.msg, 0, packet_id or _NONE)"),
        "unit/v5/test_long_topics.py"),
    Planted(Fault("the log has what lies in the buffer of all", "status/log_reasons.py",
        "    said = bytes(buf[at : min(end, at + _SHOWN)])",
        "    said = bytes(broker.rx[:_SHOWN])"),
        "unit/status/test_log_secrets.py"),
    Planted(Fault("a turn reads from each TLS client", "platform/tls_cpython.py",
        "if (stream.why or stream.is_mute) and stream is not chosen:", "if False:"),
        "tls/test_bounds.py::test_many_floods_take_turns"),
    Planted(Fault("a turn reads all that a TLS client has sent", "platform/tls_cpython.py",
        "                    has_received = True\n", ""),
        "tls/test_bounds.py::test_a_turn_reads_so_much_and_answers_do_not_pile_up"),
    Planted(Fault("an exception ends the broker", "broker.py",
        "            self.loop.exceptions += 1\n", "            raise failed\n"),
        "unit/platform/test_exceptions.py"),
    Planted(Fault("a certificate's name that is no text raises", "platform/x509.py",
        "    except (IndexError, ValueError):\n        return",
        "    except IndexError:\n        return"),
        "unit/platform/test_client_names.py"),
    Planted(Fault("a bridge's prefix makes a topic with $", "bridge/mapping.py",
        "if each.filters[1 - self.side][0] != _DOLLAR:", "if False:"),
        "unit/bridge/test_mapping.py"),
    Planted(Fault("each bridge brings requests in", "bridge/bridges.py",
        "        if not bridge or buf[topic] != _DOLLAR:\n", "        if True:\n"),
        "unit/bridge/test_messages.py"),
)  # fmt: skip


def run(folder: Path, *tests: str) -> subprocess.CompletedProcess[str]:
    """Tests on CPython, with the broker of that folder."""
    options = ("-q", "-p", "no:cacheprovider", "-m", "nightly or not nightly")
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, *(f"{HERE}/{test}" for test in tests)],
        cwd=campaign.ROOT,
        env=campaign.environment("cpython", folder),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def test_without_a_fault_they_pass() -> None:
    ran = run(LIB.parent, *sorted({planted.test for planted in FAULTS}))
    assert ran.returncode == 0, ran.stdout


@pytest.mark.parametrize("planted", FAULTS, ids=lambda planted: planted.fault.name)
def test_it_is_found(planted: Planted, tmp_path: Path) -> None:
    plant(planted.fault, tmp_path)
    ran = run(tmp_path, planted.test)
    assert ran.returncode == pytest.ExitCode.TESTS_FAILED, ran.stdout + ran.stderr
    assert re.match(r"[1-9]\d* failed", ran.stdout.splitlines()[-1]), ran.stdout
    assert "SyntaxError" not in ran.stdout
