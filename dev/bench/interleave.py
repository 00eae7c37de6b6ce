"""Runs a workload on all brokers in turns, A B C, A B C, each in its own process."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager

from slotmq_tools.codec import Malformed
from slotmq_tools.errors import ToolError

from .brokers import Broker, running
from .client import Silent, Unexpected
from .numbered import Violation
from .results import Cell, Row
from .workloads import Load, Workload

_FAILURES = (Malformed, Unexpected, Violation, Silent, ToolError, OSError)


def run(workload: Workload, brokers: Sequence[Broker], rounds: int, seconds: float) -> Row:
    """The figures of each broker that supports the workload, after a warm-up round.

    A broker that fails takes no part in later rounds; its cell has the reason.
    """
    row = {broker.name: Cell() for broker in brokers if workload.suits(broker)}
    with ExitStack() as stack:
        loads: dict[str, Load] = {}
        for broker in brokers:
            if broker.name in row:
                with _failing_into(row[broker.name]):
                    loads[broker.name] = _open(workload, broker, stack)
        for number in range(rounds + 1):
            for name, load in loads.items():
                _round(load, row[name], seconds, is_counted=number > 0)
    return row


def _open(workload: Workload, broker: Broker, stack: ExitStack) -> Load:
    shape = workload.relayed
    clients = (shape.publishers, shape.subscribers) if shape else (0, 0)
    load = workload.open(stack.enter_context(running(broker, *clients)))
    return stack.enter_context(closing(load))


def _round(load: Load, cell: Cell, seconds: float, *, is_counted: bool) -> None:
    if cell.failure:
        return
    with _failing_into(cell):
        figures = load.round(seconds)
        if is_counted:
            cell.rounds.append(figures)


@contextmanager
def _failing_into(cell: Cell) -> Iterator[None]:
    try:
        yield
    except _FAILURES as failure:
        cell.failure = str(failure) or type(failure).__name__
