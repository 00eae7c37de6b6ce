"""Runs pytest, and what failed once more, alone: what passes then is unsteady.

Failures are what pytest's own cache has (`--lf`), in a folder of its own for each run.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

MOST_UNSTEADY = 2  # that do not fail a run
MOST_AGAIN = 30  # of more failures the cause is no accident
NONE_SELECTED = 5  # pytest's exit codes
SOME_FAILED = 1


@dataclass(frozen=True)
class Call:
    """One run of pytest."""

    name: str
    options: tuple[str, ...]
    workers: tuple[str, ...] = ()  # of pytest-xdist; the second time there are none


@dataclass(frozen=True)
class Outcome:
    ok: bool
    unsteady: list[str]


def run(calls: Sequence[Call], cache: Path) -> Outcome:
    """All calls, and then again what failed in them."""
    codes = {call: _pytest(call, cache, "--cache-clear", *call.workers) for call in calls}
    ok = all(code in (0, NONE_SELECTED, SOME_FAILED) for code in codes.values())
    failed = {call: _failed(call, cache) for call in calls if codes[call] == SOME_FAILED}
    if sum(map(len, failed.values())) > MOST_AGAIN:
        return Outcome(False, [])
    unsteady: list[str] = []
    for call, before in failed.items():
        print(f"\n{call.name}: what failed, once more, alone", flush=True)
        ok &= _pytest(call, cache, "--lf", "--lfnf=none", "-p", "no:xdist") == 0
        unsteady += sorted(before - _failed(call, cache))
    return Outcome(ok, unsteady)


def report(outcome: Outcome, before: Sequence[str] = ()) -> bool:
    """List all that was unsteady, in earlier runs too; whether all is well."""
    unsteady = [*before, *outcome.unsteady]
    if unsteady:
        print(f"\nunsteady, and to be mended ({MOST_UNSTEADY} are let pass):")
        print("\n".join(f"  {test}" for test in unsteady), flush=True)
    return outcome.ok and len(unsteady) <= MOST_UNSTEADY


def _pytest(call: Call, cache: Path, *options: str) -> int:
    words = ["-o", f"cache_dir={cache / call.name}", *call.options, *options]
    print("pytest", *call.options, *options, flush=True)
    return subprocess.run([sys.executable, "-m", "pytest", *words], check=False).returncode


def _failed(call: Call, cache: Path) -> set[str]:
    kept = cache / call.name / "v/cache/lastfailed"
    return set(json.loads(kept.read_text())) if kept.exists() else set()
