"""What is seen of the broker's process: its CPU time, and when it sleeps."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .client import TIMEOUT_S, Silent

_PAUSE_S = 0.0005
_MICRO = 1e6
_SCHEDULED_TIME = 2  # the kernel's CPUCLOCK_SCHED: nanoseconds, all threads of the process


def cpu_seconds(pid: int) -> float:
    """CPU time of a process so far, by the clock that clock_getcpuclockid(3) names."""
    return time.clock_gettime((~pid << 3) | _SCHEDULED_TIME)


def cpu_us(pid: int, run: Callable[[], int]) -> float:
    """The CPU time that the process takes for each of the messages that this run delivers."""
    before = cpu_seconds(pid)
    count = run()
    return (cpu_seconds(pid) - before) / count * _MICRO


class Sleeper:
    """Follows a process by its state in /proc (proc(5))."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._stat = Path(f"/proc/{pid}/stat")

    def wait_until_asleep(self) -> None:
        """Return when the process waits for an event."""
        self._wait_for("S")

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop the process in this block; afterwards it finds all bytes sent to it at once."""
        os.kill(self._pid, signal.SIGSTOP)
        self._wait_for("T")
        yield
        os.kill(self._pid, signal.SIGCONT)

    def _wait_for(self, state: str) -> None:
        end = time.monotonic() + TIMEOUT_S
        while self._stat.read_text().rpartition(")")[2].split()[0] != state:
            if time.monotonic() > end:
                raise Silent(f"the broker has not slept for {TIMEOUT_S} s")
            time.sleep(_PAUSE_S)
