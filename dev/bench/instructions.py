"""Counts instead of timing: instructions and system calls per delivered message.

    python -m slotmq_dev.bench.instructions [--workload NAME] [--update]

slotmq on 64-bit MicroPython runs under callgrind twice: with 2 N messages, and with N messages and
then idle until it has run as long. The difference divided by N is the cost of a message in the
steady state, without start, connects, timers and end. N is so large that the variation of a start
(5 million instructions, by garbage collections) does not matter. So the figures are repeatable.
docs/figures.json has them as a baseline; a count above the baseline or above the budget is an
error. It needs 64 bits, since valgrind does not run the 32-bit loader.
"""

import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from slotmq_tools.errors import ToolError
from slotmq_tools.ports import free_port

from .. import figures
from ..peers import valgrind
from . import churn, pipelined
from .brokers import HOST, RECORDING, Start, process, slotmq_on_micropython
from .client import Address
from .meter import Sleeper
from .pipelined import Shape

_TOLERANCE = 1.05
_FEW_CALLS = 0.005  # system calls per message: tolerance for rare ones

_COLLECTED = re.compile(r"^==\d+== Collected : (\d+)", re.MULTILINE)
# The line where a call begins; a blocking call has a second line. clock_gettime is a system call
# only under valgrind; elsewhere the vDSO answers.
_SYSTEM_CALL = re.compile(
    r"^SYSCALL\[\d+,\d+\]\(\s*\d+\) (?!sys_clock_gettime)\w+ ?\(", re.MULTILINE
)


@dataclass(frozen=True)
class Count:
    """Instructions and system calls, of a run or of a message."""

    instructions: float
    system_calls: float

    def __str__(self) -> str:
        return f"{self.instructions:,.0f} + {self.system_calls:.3f}"


@dataclass(frozen=True)
class Run:
    """The count of a broker's run, and how long its clients were connected."""

    count: Count
    deliveries: int
    took_s: float


@dataclass(frozen=True)
class Budget:
    """A workload, the number of bursts or clients for N, and the largest cost of one."""

    shape: Shape | None  # None: clients that connect, subscribe and leave
    bursts: int
    at_most: Count
    conf: str = ""  # of the broker
    rules: str = ""  # of its acl_file


def _pair(qos: int, burst: int, level: int = 4, to: int = 0, **more: Any) -> Shape:
    shape = Shape(1, 1, qos=qos, payload=16, burst=burst, depth=1, level=level, receiver_level=to)
    return replace(shape, **more)


# 20 users with 5 rules each; the clients of the benchmark have no user name.
_RULES = "topic readwrite #\n" + "".join(
    f"user u{n}\n" + "".join(f"topic readwrite home/{n}/{k}/#\n" for k in range(5))
    for n in range(20)
)


def _with(conf: str, qos: int) -> Budget:
    burst, bursts = (20, 150) if qos else (100, 30)
    return Budget(_pair(qos, burst), bursts, Count(500_000, 1), f"allow_anonymous true\n{conf}\n")


_USER = b"\x26\0\4unit\0\7Celsius"
_EXPIRES = b"\2\0\0\x0e\x10"
_IDENTIFIER = b"\x0b\7"
_HANDLERS = Count(500_000, 1)
_GROUP_OF_4 = Shape(1, 4, payload=16, burst=100, depth=1, level=5, group=True)
BUDGETS = {
    "qos0": Budget(_pair(0, 100), 600, Count(14_000, 0.1)),
    "qos0-acl": Budget(
        _pair(0, 100),
        600,
        Count(4_590, 0.1),  # 1.1 times those without rules
        "allow_anonymous true\nacl_file {folder}/acl\n",
        _RULES,
    ),
    "qos0-websocket": Budget(
        Shape(1, 1, payload=16, burst=100, depth=1, web=True),
        600,
        Count(6_260, 0.1),  # 1.5 times those of TCP
        "listener {port} 127.0.0.1\nprotocol websockets\nallow_anonymous true\n",
    ),
    "qos0-recorded": Budget(_pair(0, 100), 600, Count(21_000, 0.2), RECORDING),
    "one-at-a-time": Budget(_pair(0, 1), 15000, Count(25_000, 4)),
    "qos1": Budget(_pair(1, 20), 600, Count(40_000, 0.5)),
    "qos2": Budget(_pair(2, 20), 600, Count(80_000, 1)),
    # MQTT 5.0: 1.3 times 3.1.1, between the versions 1.5 times, a fan-out 1.6 times
    "qos0-v5": Budget(_pair(0, 100, 5), 600, Count(5_480, 0.1)),
    "qos1-v5": Budget(_pair(1, 20, 5), 600, Count(16_900, 0.5)),
    "qos2-v5": Budget(_pair(2, 20, 5), 600, Count(22_900, 1)),
    "fan-out-v5": Budget(Shape(1, 50, payload=16, depth=1, level=5), 12, Count(893, 0.1)),
    "qos0-3-to-5": Budget(_pair(0, 100, 4, 5), 600, Count(6_330, 0.1)),
    "qos0-5-to-3": Budget(_pair(0, 100, 5, 4), 600, Count(6_330, 0.1)),
    "qos1-5-to-3": Budget(_pair(1, 20, 5, 4), 600, Count(19_500, 0.5)),
    "fan-out-5-to-3": Budget(
        Shape(1, 50, payload=16, depth=1, level=5, receiver_level=4), 12, Count(1_120, 0.1)
    ),
    # By the handlers: properties, topic aliases both ways, expiry, identifiers, groups
    "qos0-v5-user": Budget(_pair(0, 100, 5, props=_USER), 20, _HANDLERS),
    "qos1-v5-user": Budget(_pair(1, 20, 5, props=_USER), 60, _HANDLERS),
    "qos2-v5-user": Budget(_pair(2, 20, 5, props=_USER), 60, _HANDLERS),
    "qos0-v5-alias": Budget(_pair(0, 100, 5, alias=True), 20, _HANDLERS),
    "qos1-v5-alias": Budget(_pair(1, 20, 5, alias=True), 60, _HANDLERS),
    "qos0-v5-expiry": Budget(_pair(0, 100, 5, props=_EXPIRES), 20, _HANDLERS),
    "qos1-v5-expiry": Budget(_pair(1, 20, 5, props=_EXPIRES), 60, _HANDLERS),
    "qos0-v5-identifier": Budget(_pair(0, 100, 5, of_filter=_IDENTIFIER), 20, _HANDLERS),
    "qos1-v5-identifier": Budget(_pair(1, 20, 5, of_filter=_IDENTIFIER), 60, _HANDLERS),
    "qos0-v5-shared": Budget(_GROUP_OF_4, 20, _HANDLERS),
    "qos1-v5-shared": Budget(replace(_GROUP_OF_4, qos=1, burst=20), 60, _HANDLERS),
    "qos1-5-to-3-user": Budget(_pair(1, 20, 5, 4, props=_USER), 60, _HANDLERS),
    # A limit that a packet's length is compared with: twice
    "qos0-size-limit": replace(_with("message_size_limit 100000", 0), at_most=Count(8_520, 0.1)),
    "qos1-size-limit": replace(_with("message_size_limit 100000", 1), at_most=Count(26_000, 0.5)),
    # Settings for which something must look at each packet, the journal without and with promises
    "qos0-v5-recorded": Budget(_pair(0, 100, 5), 30, Count(21_000, 0.2), RECORDING),
    "qos0-queue": replace(_with("queue_qos0_messages true", 0), at_most=Count(8_520, 0.1)),
    "qos0-upgrade": _with("upgrade_outgoing_qos true", 0),
    "qos0-duplicates": _with("allow_duplicate_messages true", 0),
    "qos1-journal": _with("persistence true\npersistence_location {folder}/", 1),
    "fan-out": Budget(Shape(1, 50, payload=16, depth=1), 3, Count(5_000, 0.1)),
    "connect": Budget(None, 300, Count(1_100_000, 18), "allow_anonymous true\nlog_dest none\n"),
    "wildcards": Budget(Shape(1, 50, payload=16, depth=1, wildcards=1000), 1000, Count(20_000, 1)),
}


def per_message(budget: Budget, profile: Path | None = None) -> Count:
    """The cost of a delivery."""
    twice = _run(budget, 2 * budget.bursts, 0, profile)
    once = _run(budget, budget.bursts, twice.took_s, None)
    messages = twice.deliveries - once.deliveries
    return Count(
        (twice.count.instructions - once.count.instructions) / messages,
        (twice.count.system_calls - once.count.system_calls) / messages,
    )


def faults(count: Count, at_most: Count, baseline: Count | None) -> list[str]:
    """The bounds that this count exceeds."""
    bounds = [("the budget", at_most)]
    if baseline:
        limit = Count(
            baseline.instructions * _TOLERANCE,
            baseline.system_calls * _TOLERANCE,
        )
        bounds.append(("5 % above the baseline", limit))
    return [
        f"exceeds {name}, {bound}"
        for name, bound in bounds
        if count.instructions > bound.instructions
        or count.system_calls > bound.system_calls + _FEW_CALLS
    ]


def parse_log(log: str) -> Count:
    """The count of a run, from valgrind's log."""
    collected = _COLLECTED.search(log)
    if not collected:
        raise click.ClickException("valgrind has no count: " + log[-200:])
    return Count(int(collected[1]), len(_SYSTEM_CALL.findall(log)))


def _run(budget: Budget, bursts: int, at_least_s: float, profile: Path | None) -> Run:
    """Start a broker under callgrind, let it deliver the bursts, and end it."""
    port = free_port()
    with TemporaryDirectory(prefix="slotmq-bench-") as folder:
        log = Path(folder) / "valgrind"
        start = slotmq_on_micropython(64, port, _conf(budget, Path(folder), port))
        start = _under_callgrind(start, log, profile)
        with process(start, port, Path(folder) / "broker") as child:
            began = time.monotonic()
            with _load(budget.shape, bursts, (HOST, port), child.pid) as deliveries:
                time.sleep(max(0, began + at_least_s - time.monotonic()))
                took_s = time.monotonic() - began
        return Run(parse_log(log.read_text(errors="replace")), deliveries, took_s)


@contextmanager
def _load(shape: Shape | None, bursts: int, address: Address, pid: int) -> Iterator[int]:
    """Have the bursts delivered, or so many clients served; -> how many that were."""
    if not shape:
        yield churn.one_by_one(address, bursts)
        return
    pipeline = pipelined.connect(shape, address)
    if shape.qos:  # without acknowledgements the order does not matter
        yield pipeline.run_in_step(bursts, Sleeper(pid))
    else:
        yield pipeline.run_bursts(bursts)
    pipeline.close()


def _conf(budget: Budget, folder: Path, port: int) -> Path | None:
    """The broker's configuration file, if it has one."""
    if not budget.conf:
        return None
    conf = folder / "slotmq.conf"
    conf.write_text(budget.conf.format(folder=folder, port=port))
    (folder / "acl").write_text(budget.rules)
    return conf


def _under_callgrind(start: Start, log: Path, profile: Path | None) -> Start:
    command, environment = valgrind.command()
    options = [
        "--tool=callgrind",
        "--trace-syscalls=yes",
        f"--log-file={log}",
        f"--callgrind-out-file={profile or '/dev/null'}",
    ]
    return Start([*command, *options, *start.command], {**environment, **start.environment})


@click.command()
@click.option("--workload", "names", type=click.Choice(list(BUDGETS)), multiple=True)
@click.option("--update", is_flag=True, help="Write these figures as the baseline.")
@click.option(
    "--profile",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="Write files for callgrind_annotate there.",
)
def main(names: tuple[str, ...], update: bool, profile: Path | None) -> None:
    """Count instructions and system calls per delivery, and compare them with the budget."""
    kept = figures.measured()["instructions"]
    baseline = {name: Count(*count) for name, count in kept.items()}
    counts: dict[str, Count] = {}
    failed = False
    for name in names or BUDGETS:
        at_most = BUDGETS[name].at_most
        try:
            counts[name] = count = per_message(
                BUDGETS[name], profile / f"callgrind.{name}" if profile else None
            )
        except ToolError as error:
            raise click.ClickException(str(error)) from None
        wrong = faults(count, at_most, None if update else baseline.get(name))
        failed = failed or bool(wrong)
        verdict = "; ".join(wrong) or "good"
        print(f"{name:14} {count!s:>18}   budget {at_most!s:>15}   {verdict}", flush=True)
    if update:
        found = {n: [round(c.instructions), round(c.system_calls, 3)] for n, c in counts.items()}
        figures.keep("instructions", found)
    sys.exit(failed)


if __name__ == "__main__":
    main()
