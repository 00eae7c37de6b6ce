"""Instruction counts: what is read from valgrind's log, and when a count is too high."""

import os
import subprocess
import sys

import click
import pytest

from slotmq_dev.bench.instructions import BUDGETS, Count, faults, parse_log
from slotmq_dev.bench.sleeper import Sleeper

LOG = """\
==7== Command: micropython
SYSCALL[7,1](12) sys_brk ( 0x4021000 ) --> [pre-success] Success(0x4021000)
SYSCALL[7,1](  0) sys_read ( 4, 0x4cbc24b, 53 ) --> [async] ...
SYSCALL[7,1](0) ... [async] --> Success(0x35)
SYSCALL[7,1](228) sys_clock_gettime( 1, 0x1ffefff8c0 )[sync] --> Success(0x0)
SYSCALL[7,1](1) sys_write ( 4, 0x4cbc24b, 53 ) --> [async] ...
SYSCALL[7,1](1) ... [async] --> Success(0x35)
==7== Events    : Ir
==7== Collected : 2476379
"""


def test_system_calls_are_counted_once_without_clock_gettime() -> None:
    assert parse_log(LOG) == Count(2_476_379, 3)


def test_a_log_without_a_count_is_an_error() -> None:
    with pytest.raises(click.ClickException, match="no count"):
        parse_log("==7== valgrind: failed to start")


@pytest.mark.parametrize(
    ("count", "found"),
    [
        (Count(1000, 0.05), []),
        (Count(1049, 0.05), []),
        (Count(1051, 0.05), ["baseline"]),
        (Count(1000, 0.06), ["baseline"]),
        (Count(2001, 0.05), ["budget", "baseline"]),
        (Count(1000, 0.11), ["budget", "baseline"]),
    ],
)
def test_faults_name_the_bound(count: Count, found: list[str]) -> None:
    reported = faults(count, Count(2000, 0.1), Count(1000, 0.05))
    assert len(reported) == len(found)
    assert all(bound in line for bound, line in zip(found, reported, strict=True))


def test_without_a_baseline_only_the_budget_counts() -> None:
    assert faults(Count(1900, 0.1), Count(2000, 0.1), None) == []


def test_each_budget_counts_whole_bursts() -> None:
    for budget in BUDGETS.values():
        assert not budget.shape or budget.shape.depth == 1
        assert budget.bursts > 0


def test_a_stopped_process_finds_all_bytes_at_once() -> None:
    """Its one read returns both pieces that were written meanwhile."""
    read_all = "import os; os.write(1, b'.'); print(len(os.read(0, 100)))"
    with subprocess.Popen(
        [sys.executable, "-c", read_all], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdin and child.stdout
        assert child.stdout.read(1) == b"."
        broker = Sleeper(child.pid)
        broker.wait_until_asleep()
        with broker.stopped():
            for _ in range(2):
                os.write(child.stdin.fileno(), b"12345")
        assert child.stdout.read() == b"10\n"
