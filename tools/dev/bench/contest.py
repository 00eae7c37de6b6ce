"""Runs a workload on all brokers in turns: A B C, A B C, each in its own process."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager

from ...codec import Malformed
from ...errors import ToolError
from .brokers import Broker, running
from .client import Silent, Unexpected
from .numbered import Violation
from .results import Cell, Row
from .workloads import Lane, Workload

_FAILURES = (Malformed, Unexpected, Violation, Silent, ToolError, OSError)


def run(workload: Workload, brokers: Sequence[Broker], rounds: int, seconds: float) -> Row:
    """The figures of each broker that can serve the workload; one round before them warms up.

    A broker that fails is out of the later rounds, and the cell says why.
    """
    row = {broker.name: Cell() for broker in brokers if workload.suits(broker)}
    with ExitStack() as stack:
        lanes: dict[str, Lane] = {}
        for broker in brokers:
            if broker.name in row:
                with _failing_into(row[broker.name]):
                    lanes[broker.name] = _open(workload, broker, stack)
        for number in range(rounds + 1):
            for name, lane in lanes.items():
                _round(lane, row[name], seconds, keep=number > 0)
    return row


def _open(workload: Workload, broker: Broker, stack: ExitStack) -> Lane:
    shape = workload.relayed
    clients = (shape.publishers, shape.subscribers) if shape else (0, 0)
    lane = workload.open(stack.enter_context(running(broker, *clients)))
    return stack.enter_context(closing(lane))


def _round(lane: Lane, cell: Cell, seconds: float, *, keep: bool) -> None:
    if cell.failure:
        return
    with _failing_into(cell):
        figures = lane.round(seconds)
        if keep:
            cell.rounds.append(figures)


@contextmanager
def _failing_into(cell: Cell) -> Iterator[None]:
    try:
        yield
    except _FAILURES as failure:
        cell.failure = str(failure) or type(failure).__name__
