"""`make bench`: runs the workloads on all brokers, prints and keeps the figures."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from slotmq_tools.codec import Malformed
from slotmq_tools.errors import ToolError

from .. import figures
from . import page, tls
from .brokers import BROKERS, Broker, named, running
from .client import Silent, Unexpected
from .numbered import Violation
from .results import Cell, Results, medians
from .workloads import WORKLOADS, Load, Workload

_SECONDS = 1.0
_ROUNDS = 5
_FAILURES = (Malformed, Unexpected, Violation, Silent, ToolError, OSError)


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
@click.option("--rounds", type=click.IntRange(1), default=_ROUNDS, show_default=True)
@click.option("--seconds", type=float, default=_SECONDS, show_default=True, help="Of a round.")
@click.option("--tls", "with_tls", is_flag=True, help="All speak TLS, those that can.")
@click.option("--passwords", is_flag=True, help="All clients log in, where brokers have users.")
@click.option(
    "--keep", is_flag=True, help="Keep the figures in docs/figures.json, and in the documents."
)
def main(
    workload_names: tuple[str, ...],
    broker_names: tuple[str, ...],
    peers: tuple[str, ...],
    rounds: int,
    seconds: float,
    with_tls: bool,
    passwords: bool,
    keep: bool,
) -> None:
    """Measure brokers side by side: CPU time per delivered message."""
    secret = with_tls or passwords
    if secret and (peers or keep):
        raise click.UsageError("--tls and --passwords go with neither --peer nor --keep")
    others = _others(peers)
    brokers = [each for each in BROKERS if not broker_names or each.name in broker_names]
    found: Results = {}
    failed = False
    with TemporaryDirectory(prefix="slotmq-bench-") as folder:
        if with_tls:
            tls.use(Path(folder))
        if passwords:
            tls.use_passwords(Path(folder))
        for workload in WORKLOADS:
            if not workload_names or workload.name in workload_names:
                print(f"{workload.name}: {workload.title}", file=sys.stderr)
                cells = _run(workload, [*brokers, *others], rounds, seconds)
                found[workload.name] = medians(cells)
                for who, cell in cells.items():
                    if cell.failure:
                        failed = True
                        print(f"{who} fails at {workload.name}: {cell.failure}", file=sys.stderr)
    print(page.whole(found))
    if keep:
        figures.keep("bench", found)
    sys.exit(failed)


def _others(peers: Sequence[str]) -> list[Broker]:
    """The brokers that --peer names."""
    try:
        return [named(peer) for peer in peers]
    except ToolError as error:
        raise click.BadParameter(str(error), param_hint="--peer") from None


def _run(
    workload: Workload, brokers: Sequence[Broker], rounds: int, seconds: float
) -> dict[str, Cell]:
    """The figures of each broker that supports the workload, after a round to warm up.

    They take turns, A B C, A B C, each in its own process. One that fails takes no part in later
    rounds; its cell has the reason.
    """
    cells = {broker.name: Cell() for broker in brokers if workload.suits(broker)}
    with ExitStack() as stack:
        loads: dict[str, Load] = {}
        for broker in brokers:
            if broker.name in cells:
                with _failing_into(cells[broker.name]):
                    load = workload.open(stack.enter_context(running(broker)))
                    loads[broker.name] = stack.enter_context(closing(load))
        for number in range(rounds + 1):
            for name, load in loads.items():
                if not cells[name].failure:
                    with _failing_into(cells[name]):
                        figures_of_round = load.round(seconds)
                        cells[name].rounds += [figures_of_round] if number else []
    return cells


@contextmanager
def _failing_into(cell: Cell) -> Iterator[None]:
    try:
        yield
    except _FAILURES as failure:
        cell.failure = str(failure) or type(failure).__name__


if __name__ == "__main__":
    main()
