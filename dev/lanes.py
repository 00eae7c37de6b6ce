"""`python -m slotmq_dev.lanes LANE...`: runs lanes of tests, see `make help`.

A lane is one or two folders. Tests that can run in parallel share a call of pytest.
Spark, which is one process, and the emulated boards have their own calls. Failed tests, which are
those in pytest's cache (`--lf`), are rerun alone; one that passes then is unsteady.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

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


CACHE = Path("build/lanes")

SIDE_BY_SIDE = {
    "broker": ("host_tests/broker", "host_tests/sim"),
    "host": ("host_tests/host",),
    "telemetry": ("telemetry/tests",),
}

APART = (
    "-o",
    "addopts=-ra --strict-markers --strict-config",
)  # without the --ignore of pyproject.toml
SPARK = Call("spark", (*APART, "--timeout", "300", "-W", "default", "telemetry/tests/spark"))
BOARD = (*APART, "--timeout", "900")
# Each file has its own emulated board. The tests mostly wait, so they run in parallel, except
# those that measure time.
BOARDS = Call(
    "board",
    (*BOARD, "--ignore", "host_tests/board/timed", "host_tests/board"),
    ("-n", "6", "--dist", "loadfile"),
)
TIMED = Call("timed", (*BOARD, "host_tests/board/timed"))
OWN_CALLS = {"spark": (SPARK,), "board": (BOARDS, TIMED)}
NAMES = (*SIDE_BY_SIDE, *OWN_CALLS)


def calls(lanes: tuple[str, ...], which: str) -> list[Call]:
    """The calls of pytest for these lanes, with the tests of this mark."""
    paths = [name for lane in lanes for name in SIDE_BY_SIDE.get(lane, ())]
    found = [Call("core", tuple(paths), ("-n", "3"))] if paths else []
    found += [call for lane in lanes for call in OWN_CALLS.get(lane, ())]
    return [Call(call.name, ("-m", which, *call.options), call.workers) for call in found]


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


@click.command()
@click.argument("lanes", nargs=-1, required=True, type=click.Choice(NAMES))
@click.option("--nightly", is_flag=True, help="Run only the tests that are run once a day.")
@click.option(
    "--unsteady",
    "unsteady_file",
    type=click.Path(path_type=Path),
    help="A file that lists unsteady tests; those of earlier runs count, too.",
)
def main(lanes: tuple[str, ...], nightly: bool, unsteady_file: Path | None) -> None:
    """Run these lanes of tests, and rerun each failed test alone."""
    outcome = run(calls(lanes, "nightly" if nightly else "not nightly"), CACHE)
    earlier = (
        unsteady_file.read_text().splitlines() if unsteady_file and unsteady_file.exists() else []
    )
    if unsteady_file:
        unsteady_file.parent.mkdir(parents=True, exist_ok=True)
        unsteady_file.write_text("".join(f"{test}\n" for test in [*earlier, *outcome.unsteady]))
    sys.exit(not report(outcome, earlier))


if __name__ == "__main__":
    main()
