"""`make bench`: runs the workloads on all brokers, prints and writes the figures."""

import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from rich.console import Console

from . import interleave, report, tables, tls
from .brokers import BROKERS, Broker
from .results import Results
from .versions import all_versions
from .workloads import WORKLOADS, Workload

_PAGE = Path(__file__).parents[3] / "docs/performance.md"
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
def main(
    workload_names: tuple[str, ...],
    broker_names: tuple[str, ...],
    rounds: int | None,
    with_tls: bool,
    passwords: bool,
    quick: bool,
    file: Path | None,
) -> None:
    """Measure brokers side by side: CPU time per delivered message."""
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
        results = _run_all(
            [each for each in WORKLOADS if not workload_names or each.name in workload_names],
            [each for each in BROKERS if not broker_names or each.name in broker_names],
            rounds,
            _QUICK_SECONDS if quick else _SECONDS,
        )
    shown = tables.all_tables(results)
    failures = tables.failures(results)
    report.show(shown, console)
    for workload, broker, reason in failures:
        console.print(f"{broker} fails at {workload}: {reason}")
    if file := file or (_PAGE if whole else None):
        command = " ".join(["python -m slotmq_tools.dev.bench", *sys.argv[1:]])
        report.write(
            file,
            shown,
            command=command,
            versions=all_versions(),
            rounds=rounds,
            failures=failures,
        )
    sys.exit(any(broker in tables.OURS for _, broker, _ in failures))


def _run_all(
    workloads: Sequence[Workload], brokers: Sequence[Broker], rounds: int, seconds: float
) -> Results:
    progress = Console(stderr=True)
    results: Results = {}
    for workload in workloads:
        with progress.status(workload.title):
            results[workload.name] = interleave.run(workload, brokers, rounds, seconds)
    return results


if __name__ == "__main__":
    main()
