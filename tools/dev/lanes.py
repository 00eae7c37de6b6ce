"""`python -m slotmq_tools.dev.lanes LANE...`: runs lanes of tests, see `make help`.

A lane is a folder of host_tests, or two. All that can run side by side does; the others
have their own calls of pytest: Spark, which is one process, and the emulated boards.
"""

import sys
from pathlib import Path

import click

from . import again
from .again import Call

TESTS = Path("host_tests")
CACHE = Path("build/lanes")

SIDE_BY_SIDE = {"broker": ("broker", "sim"), "host": ("host",), "telemetry": ("telemetry",)}

APART = ("-o", "addopts=-ra --strict-markers --strict-config")  # not left out, as else they are
SPARK = Call("spark", (*APART, "--timeout", "300", "-W", "default", "host_tests/telemetry/spark"))
BOARD = (*APART, "--timeout", "900")
# They wait more than they compute: each file of them has a board of its own, and they run
# side by side; but for what is measured.
BOARDS = Call(
    "board",
    (*BOARD, "--ignore", "host_tests/board/timed", "host_tests/board"),
    ("-n", "6", "--dist", "loadfile"),
)
TIMED = Call("timed", (*BOARD, "host_tests/board/timed"))
OWN_CALLS = {"telemetry": (SPARK,), "board": (BOARDS, TIMED)}
NAMES = (*SIDE_BY_SIDE, "board")


def calls(lanes: tuple[str, ...], which: str) -> list[Call]:
    """The calls of pytest for those lanes, with the tests of that mark."""
    paths = [str(TESTS / name) for lane in lanes for name in SIDE_BY_SIDE.get(lane, ())]
    found = [Call("core", tuple(paths), ("-n", "3"))] if paths else []
    found += [call for lane in lanes for call in OWN_CALLS.get(lane, ())]
    return [Call(call.name, ("-m", which, *call.options), call.workers) for call in found]


@click.command()
@click.argument("lanes", nargs=-1, required=True, type=click.Choice(NAMES))
@click.option("--nightly", is_flag=True, help="What is worth it once a day, and only that.")
@click.option(
    "--unsteady",
    "kept",
    type=click.Path(path_type=Path),
    help="Where the unsteady tests are kept, and counted together with those of earlier runs.",
)
def main(lanes: tuple[str, ...], nightly: bool, kept: Path | None) -> None:
    """Run these lanes of tests, and what fails once more, alone."""
    outcome = again.run(calls(lanes, "nightly" if nightly else "not nightly"), CACHE)
    earlier = kept.read_text().splitlines() if kept and kept.exists() else []
    if kept:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text("".join(f"{test}\n" for test in [*earlier, *outcome.unsteady]))
    sys.exit(not again.report(outcome, earlier))


if __name__ == "__main__":
    main()
