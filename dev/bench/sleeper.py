"""A process that sleeps when it has nothing to do, on Linux."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .client import TIMEOUT_S, Silent

_PAUSE_S = 0.0005


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
