"""The cost of a round: CPU time of the broker's process and of the load generator's."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_MICRO = 1e6
_SCHEDULED_TIME = 2  # the kernel's CPUCLOCK_SCHED: nanoseconds, all threads of the process


@dataclass
class Cost:
    """CPU and wall time of a process and of the load generator."""

    cpu_s: float = 0
    wall_s: float = 0
    generator_s: float = 0
    sleeps: int = 0  # how often the process waited for events

    def per_message(self, messages: int) -> dict[str, float]:
        """The figures of a round with so many deliveries."""
        return {
            "cpu_us": self.cpu_s / messages * _MICRO,
            "generator_us": self.generator_s / messages * _MICRO,
            "busy": self.cpu_s / self.wall_s,
            "per_sleep": messages / max(1, self.sleeps),
        }


@contextmanager
def measure(pid: int) -> Iterator[Cost]:
    """A Cost that is filled in when the block ends."""
    cost = Cost()
    sleeps, wall = _sleeps(pid), time.monotonic()
    generator, cpu = time.process_time(), cpu_seconds(pid)
    yield cost
    cost.cpu_s = cpu_seconds(pid) - cpu
    cost.generator_s = time.process_time() - generator
    cost.wall_s = time.monotonic() - wall
    cost.sleeps = _sleeps(pid) - sleeps


def cpu_seconds(pid: int) -> float:
    """CPU time of a process so far, by the clock that clock_getcpuclockid(3) names."""
    return time.clock_gettime((~pid << 3) | _SCHEDULED_TIME)


def resident_kb(pid: int) -> int:
    """The resident memory of a process."""
    return _status(Path(f"/proc/{pid}/status"), "VmRSS")


def _sleeps(pid: int) -> int:
    threads = Path(f"/proc/{pid}/task").glob("*/status")
    return sum(_status(thread, "voluntary_ctxt_switches") for thread in threads)


def _status(file: Path, key: str) -> int:
    for line in file.read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1])
    raise KeyError(f"{file} has no {key}")
