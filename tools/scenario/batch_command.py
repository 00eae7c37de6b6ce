"""Runs `slotmq sim --spark`: prints the table of results, and the failed runs."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import click

from ..errors import ToolError
from . import batch, report
from .read import BadScenario

_SHOWN = 10  # failures


def run_batch(
    file: Path, board: str | None, master: str, seeds: str, grid: Sequence[str],
    *, as_json: bool,
) -> None:  # fmt: skip
    """Run all seeds; the exit status is 1 if a run failed."""
    numbers = batch.seeds(seeds)
    try:
        work = batch.Work(file.read_text(), board, batch.grid(grid))
        batch.check(work)
    except (OSError, UnicodeDecodeError, BadScenario) as error:
        click.echo(f"Error: {file}: {error}", err=True)
        sys.exit(2)
    start = time.monotonic()
    rows = _on_spark(master, work, numbers)
    took = time.monotonic() - start
    click.echo(f"{len(rows):,} runs in {took:.0f} s, {len(rows) / took:.1f} per second", err=True)
    if as_json:
        click.echo(json.dumps({"grid": work.grid, "runs": rows}, indent=2))
    else:
        click.echo(report.printed(*batch.capacity(rows, work)))
    _print_failures(rows, work, str(file))


def _on_spark(master: str, work: batch.Work, numbers: range) -> list[batch.Row]:
    try:
        simulations = import_module("slotmq_telemetry.simulations")
    except ModuleNotFoundError:
        raise ToolError("--spark needs Spark: `pip install slotmq-telemetry`") from None
    found: list[batch.Row] = simulations.rows(master, work, numbers)
    return found


def _print_failures(rows: Sequence[batch.Row], work: batch.Work, file: str) -> None:
    failed = [row for row in rows if row["failure"]]
    for line in batch.failures(failed[:_SHOWN], work, file):
        click.echo(line, err=True)
    if failed:
        raise click.ClickException(f"{len(failed)} of {len(rows)} runs failed")
    traces = len({row["trace"] for row in rows})
    click.echo(f"no run failed; {traces:,} different traces")
