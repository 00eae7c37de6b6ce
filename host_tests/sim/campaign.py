"""Run many seeds, in several processes, on either runtime; collect event counts and failures.

A failed seed is shrunk: fewer steps, then fewer clients, as long as it still fails.
"""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from slotmq_tools import micropython
from slotmq_tools.pack import mpy

ROOT = Path(__file__).resolve().parents[2]
RUNNER = Path(__file__).with_name("run.py")
RUNTIMES = ("cpython", "micropython")
LITTLEFS = "littlefs"  # MicroPython, with the journal on its own littlefs
FAT = "fat"  # CPython, with the journal on a model of FAT, which the broker refuses
PLAIN = "plain"  # CPython without its own fast path for properties and its storms
BRIDGE = "bridge"  # CPython, two brokers with a bridge
BRIDGE_32 = "bridge-micropython"
OTHERS = (LITTLEFS, FAT, PLAIN, BRIDGE, BRIDGE_32)
HEAP_KB = 131072  # littlefs needs free pieces of 1 MB: 64 MB were too fragmented
STEPS = 100
_AT_ONCE = 50  # seeds per process


@dataclass(frozen=True)
class Outcome:
    """The line that run.py printed for one seed."""

    seed: int
    steps: int
    only: tuple[int, ...] = ()
    failure: str = ""
    hash: str = ""
    packets: int = 0
    clients: int = 0
    events: Mapping[str, int] = field(default_factory=dict)
    runtime: str = field(default="cpython", compare=False)  # outcomes must be equal on all

    @property
    def replay(self) -> str:
        """The command that runs exactly this again."""
        only = f" --clients {','.join(map(str, self.only))}" if self.only else ""
        where = f" --runtime {self.runtime}" if self.runtime != "cpython" else ""
        first = f"--first {self.seed} --seeds 1 --steps {self.steps}"
        return f"python -m host_tests.sim {first}{only}{where}"

    def __str__(self) -> str:
        return f"seed {self.seed}: {self.failure}\n  {self.replay}"


def run(
    runtime: str, first: int, count: int, steps: int = STEPS, only: Sequence[int] = ()
) -> Iterator[Outcome]:
    """Run seeds in one process."""
    args = [str(first), str(count), str(steps), ",".join(map(str, only))]
    args += [] if runtime in RUNTIMES else [BRIDGE if runtime == BRIDGE_32 else runtime]
    done = subprocess.run(
        [*_command(runtime), *args],
        env=environment(runtime),
        capture_output=True,
        text=True,
        check=False,
    )
    # Other lines: MicroPython reports files that were open when the power was cut.
    lines = [text for text in done.stdout.splitlines() if text.startswith(("seed ", "FAIL "))]
    for at in range(count):
        text = lines[at] if at < len(lines) else f"FAIL {first + at} {done.stderr[-2000:]}"
        yield _outcome(runtime, text, steps, tuple(only))


def run_many(
    runtime: str, first: int, count: int, steps: int, jobs: int, at_once: int = _AT_ONCE
) -> Iterator[Outcome]:
    """Run seeds in several processes, `at_once` in each; yield them in order."""
    starts = range(first, first + count, at_once)
    with ThreadPoolExecutor(jobs) as pool:
        chunks = pool.map(
            lambda at: list(run(runtime, at, min(at_once, first + count - at), steps)), starts
        )
        for chunk in chunks:
            yield from chunk


def totals(outcomes: Sequence[Outcome]) -> Counter[str]:
    """Add up the event counts."""
    found: Counter[str] = Counter()
    for outcome in outcomes:
        found.update(outcome.events)
    return found


def shrink(runtime: str, failed: Outcome) -> Outcome:
    """Find fewer steps and clients with which the same seed still fails."""
    step = failed.steps // 2
    while step:
        smaller = _again(runtime, failed, failed.steps - step, failed.only)
        if smaller:
            failed = smaller
            step = min(step, failed.steps // 2)
        else:
            step //= 2
    for client in range(8):
        left = tuple(index for index in failed.only or range(8) if index != client)
        if left and left != failed.only:
            failed = _again(runtime, failed, failed.steps, left) or failed
    return failed


def _again(runtime: str, failed: Outcome, steps: int, only: tuple[int, ...]) -> Outcome | None:
    (outcome,) = run(runtime, failed.seed, 1, steps, only)
    return outcome if outcome.failure else None


def _outcome(runtime: str, text: str, steps: int, only: tuple[int, ...]) -> Outcome:
    words = text.split()
    if words[0] == "FAIL":
        why = " ".join(words[2:]) or "it printed nothing"
        return Outcome(int(words[1]), steps, only, why, runtime=runtime)
    _, seed, digest, came, went, clients, _turns, *rest = words
    events = {name: int(value) for name, _, value in (word.partition("=") for word in rest)}
    packets = int(came) + int(went)
    return Outcome(int(seed), steps, only, "", digest, packets, int(clients), events, runtime)


def _command(runtime: str) -> list[str]:
    if _is_micropython(runtime):
        return micropython.command(32, HEAP_KB, RUNNER)
    return [sys.executable, str(RUNNER)]


def _is_micropython(runtime: str) -> bool:
    return runtime not in ("cpython", FAT, PLAIN, BRIDGE)


def environment(runtime: str, *first: Path) -> dict[str, str]:
    """The environment of run.py: where it imports from; `first` comes before everything else."""
    if _is_micropython(runtime):
        built = mpy.build_for(micropython.find(32), packed=False)
        return micropython.environment(built, mpy.tools(), ROOT)
    path = [*map(str, first), str(ROOT), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path)), "PYTHONHASHSEED": "0"}
