"""Runs pytest, and reruns failed tests alone. A test that passes in the rerun is unsteady.

The failed tests are those in pytest's cache (`--lf`); each run has its own cache folder.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

MOST_UNSTEADY = 2  # so many do not fail a run
MOST_RERUN = 30  # more failures are no accident
NONE_SELECTED = 5  # pytest's exit codes
SOME_FAILED = 1


@dataclass(frozen=True)
class Call:
    """One run of pytest."""

    name: str
    options: tuple[str, ...]
    workers: tuple[str, ...] = ()  # options of pytest-xdist; a rerun has no workers


@dataclass(frozen=True)
class Outcome:
    ok: bool
    unsteady: list[str]


def run(calls: Sequence[Call], cache: Path) -> Outcome:
    """Make all calls, then rerun the failed tests."""
    codes = {call: _pytest(call, cache, "--cache-clear", *call.workers) for call in calls}
    ok = all(code in (0, NONE_SELECTED, SOME_FAILED) for code in codes.values())
    failed = {call: _failed(call, cache) for call in calls if codes[call] == SOME_FAILED}
    if sum(map(len, failed.values())) > MOST_RERUN:
        return Outcome(False, [])
    unsteady: list[str] = []
    for call, before in failed.items():
        print(f"\n{call.name}: rerun of failed tests", flush=True)
        ok &= _pytest(call, cache, "--lf", "--lfnf=none", "-p", "no:xdist") == 0
        unsteady += sorted(before - _failed(call, cache))
    return Outcome(ok, unsteady)


def report(outcome: Outcome, before: Sequence[str] = ()) -> bool:
    """List all unsteady tests, also of earlier runs; -> whether the run has passed."""
    unsteady = [*before, *outcome.unsteady]
    if unsteady:
        print(f"\nunsteady tests, to be fixed (up to {MOST_UNSTEADY} do not fail the run):")
        print("\n".join(f"  {test}" for test in unsteady), flush=True)
    return outcome.ok and len(unsteady) <= MOST_UNSTEADY


def _pytest(call: Call, cache: Path, *options: str) -> int:
    words = ["-o", f"cache_dir={cache / call.name}", *call.options, *options]
    print("pytest", *call.options, *options, flush=True)
    return subprocess.run([sys.executable, "-m", "pytest", *words], check=False).returncode


def _failed(call: Call, cache: Path) -> set[str]:
    failures = cache / call.name / "v/cache/lastfailed"
    return set(json.loads(failures.read_text())) if failures.exists() else set()
