"""`python -m slotmq_dev.lanes LANE...`: runs lanes of tests, see `make help`.

A lane is one or two folders. Tests that can run in parallel share a call of pytest.
Spark, which is one process, and the emulated boards have their own calls.
"""

import sys
from pathlib import Path

import click

from . import rerun
from .rerun import Call

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
    outcome = rerun.run(calls(lanes, "nightly" if nightly else "not nightly"), CACHE)
    earlier = (
        unsteady_file.read_text().splitlines() if unsteady_file and unsteady_file.exists() else []
    )
    if unsteady_file:
        unsteady_file.parent.mkdir(parents=True, exist_ok=True)
        unsteady_file.write_text("".join(f"{test}\n" for test in [*earlier, *outcome.unsteady]))
    sys.exit(not rerun.report(outcome, earlier))


if __name__ == "__main__":
    main()
