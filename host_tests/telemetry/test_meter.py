"""What the benchmark counts: the CPU of processes too that end and that nobody waits for."""

import subprocess
import sys

from slotmq_tools.telemetry.bench import Meter

_WORKER_S = 1.0
# As Spark's daemon does it: its workers end, and it is not told what they took.
_DAEMON = f"""
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
end, told = os.pipe()
if os.fork() == 0:
    while time.process_time() < {_WORKER_S}:
        pass
    os._exit(0)
os.close(told)
os.read(end, 1)
"""


def test_a_worker_that_has_ended_counts() -> None:
    with Meter() as meter:
        found = meter.cost(lambda: subprocess.run([sys.executable, "-c", _DAEMON], check=True))
    assert found.cpu > _WORKER_S / 2


def test_what_was_counted_does_not_become_less() -> None:
    with Meter() as meter:
        with subprocess.Popen([sys.executable, "-c", _DAEMON]):
            pass
        before = meter.cpu()
        assert meter.cpu() >= before
