"""`make bench`: runs the workloads on all brokers, prints and writes the figures."""

import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from rich.console import Console

from slotmq_tools.errors import ToolError

from . import interleave, page, report, results, tables, tls
from .brokers import BROKERS, Broker, named
from .results import Results
from .versions import all_versions
from .workloads import WORKLOADS, Workload

_PAGE = Path(__file__).parents[2] / "docs/performance.md"
_SECONDS, _QUICK_SECONDS = 1.0, 0.3
_ROUNDS, _QUICK_ROUNDS = 5, 3


@click.command()
@click.option(
    "--workload",
    "workload_names",
    type=click.Choice([workload.name for workload in WORKLOADS]),
    multiple=True,
    help="Run only this one (may be repeated).",
)
@click.option(
    "--broker",
    "broker_names",
    type=click.Choice([broker.name for broker in BROKERS]),
    multiple=True,
    help="Run only this one (may be repeated).",
)
@click.option(
    "--peer",
    "peers",
    metavar="NAME=COMMAND",
    multiple=True,
    help="Compare with this broker too (may be repeated); {port} in the command is where it must "
    "listen, on 127.0.0.1 and without passwords.",
)
@click.option("--rounds", type=click.IntRange(1), help=f"Rounds to take medians of [{_ROUNDS}].")
@click.option("--tls", "with_tls", is_flag=True, help="All speak TLS, those that can.")
@click.option("--passwords", is_flag=True, help="All clients log in, where brokers have users.")
@click.option("--quick", is_flag=True, help="Fewer and shorter rounds.")
@click.option(
    "--write",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the figures there; a complete run writes docs/performance.md.",
)
@click.option(
    "--keep",
    "kept",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Keep the figures in this file, beside those of other workloads that are in it: a long "
    "run can be made in pieces.",
)
def main(
    workload_names: tuple[str, ...],
    broker_names: tuple[str, ...],
    peers: tuple[str, ...],
    rounds: int | None,
    with_tls: bool,
    passwords: bool,
    quick: bool,
    file: Path | None,
    kept: Path | None,
) -> None:
    """Measure brokers side by side: CPU time per delivered message."""
    others = _others(peers, secret=with_tls or passwords)
    try:
        before = results.load(kept) if kept else {}
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--keep") from None
    rounds = rounds or (_QUICK_ROUNDS if quick else _ROUNDS)
    whole = not (workload_names or broker_names or quick or with_tls or passwords)
    console = Console()
    if with_tls or passwords:
        broker_names = tuple(each for each in tls.BROKERS if each in (broker_names or tls.BROKERS))
    with TemporaryDirectory(prefix="slotmq-bench-") as folder:
        if with_tls:
            tls.use(Path(folder))
        if passwords:
            tls.use_passwords(Path(folder))
        measured = _run_all(
            [each for each in WORKLOADS if not workload_names or each.name in workload_names],
            [
                *(each for each in BROKERS if not broker_names or each.name in broker_names),
                *others,
            ],
            rounds,
            _QUICK_SECONDS if quick else _SECONDS,
        )
    found = measured
    if kept:
        found = _in_order(before | measured)
        results.save(found, kept)
    shown = tables.all_tables(found)
    failures = tables.failures(measured)
    report.show(shown, console)
    for workload, broker, reason in failures:
        console.print(f"{broker} fails at {workload}: {reason}")
    if file := file or (_PAGE if whole else None):
        page.write(
            file,
            found,
            shown,
            command=" ".join(["python -m slotmq_dev.bench", *sys.argv[1:]]),
            versions=all_versions(),
            rounds=_rounds_of(found),
            failures=tables.failures(found),
        )
    of_ours = {*tables.OURS, *(each.name for each in others)}
    sys.exit(any(broker in of_ours for _, broker, _ in failures))


def _others(peers: Sequence[str], *, secret: bool) -> list[Broker]:
    """The brokers that --peer names."""
    if peers and secret:
        raise click.UsageError("--peer goes with neither --tls nor --passwords")
    try:
        others = [named(peer) for peer in peers]
    except ToolError as error:
        raise click.BadParameter(str(error), param_hint="--peer") from None
    names = [each.name for each in others]
    if len(set(names)) < len(names):
        raise click.BadParameter(f"a name is there twice: {', '.join(names)}", param_hint="--peer")
    return others


def _in_order(found: Results) -> Results:
    return {each.name: found[each.name] for each in WORKLOADS if each.name in found}


def _rounds_of(found: Results) -> str:
    counts = {len(cell.rounds) for row in found.values() for cell in row.values() if cell.rounds}
    return " to ".join(map(str, sorted({min(counts), max(counts)})))


def _run_all(
    workloads: Sequence[Workload], brokers: Sequence[Broker], rounds: int, seconds: float
) -> Results:
    progress = Console(stderr=True)
    found: Results = {}
    for workload in workloads:
        with progress.status(workload.title):
            found[workload.name] = interleave.run(workload, brokers, rounds, seconds)
    return found


if __name__ == "__main__":
    main()
