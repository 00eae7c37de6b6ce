"""The meter of the benchmark: it counts the CPU of processes that have ended, too."""

import mmap
import subprocess
import sys
import time

from slotmq_dev.bench_telemetry import _SAMPLE_S, Meter

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


def test_memory_is_the_maximum_during_the_run() -> None:
    def holds(megabytes: int) -> None:
        held = bytearray(megabytes << 20)  # of zeros that nobody has touched
        held[:: mmap.PAGESIZE] = b"x" * len(held[:: mmap.PAGESIZE])
        time.sleep(3 * _SAMPLE_S)

    with Meter() as meter:
        much, little = meter.cost(lambda: holds(128)), meter.cost(lambda: holds(1))
    assert 64 << 20 < much.memory - little.memory < 192 << 20


def test_counted_cpu_does_not_decrease() -> None:
    with Meter() as meter:
        with subprocess.Popen([sys.executable, "-c", _DAEMON]):
            pass
        before = meter.cpu()
        assert meter.cpu() >= before
