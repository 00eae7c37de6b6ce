"""`slotmq telemetry`: the group of commands, and those from a harvest to a report. Spark is loaded
only where there is much to do."""

from __future__ import annotations

import os
import time
from functools import cache
from importlib import util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import ToolError
from . import demo, more_commands
from . import master as masters

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from .engine import Engine
    from .lake import Lake

_FOR_TABLES = ("pyarrow", "deltalake", "cbor2")
_SHOWN = 5  # bundles that cannot be read
_NAMES = {
    "pyspark": "Spark",
    "py4j": "Spark",
    "pyarrow": "a file of a table",
    "deltalake": "Delta",
}
_harvest = click.argument("harvest", type=more_commands.anywhere)
_lake = click.argument("tables", type=more_commands.anywhere)


class OneLine(click.Group):
    """Prints an error of the system, of Spark or of a damaged file as one line, like others."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise  # who reads the output has seen enough
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            raise ToolError(f"{where}{error.strerror or error}") from None
        except Exception as error:
            whose, _, _ = type(error).__module__.partition(".")
            if whose not in _NAMES:
                raise
            raise ToolError(f"{_NAMES[whose]}: {reason(str(error))}") from None


def reason(text: str) -> str:
    """One line of a Java stack trace: the innermost cause, or else the first line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["it failed"]
    causes = [line for line in lines if line.startswith("Caused by: ")]
    return causes[-1].removeprefix("Caused by: ") if causes else lines[0]


@click.group(cls=OneLine)
def telemetry() -> None:
    """Make tables of what boards have recorded.

    HARVEST is a folder that `slotmq harvest` fills. TABLES is a folder that these commands
    fill: bronze has each record as it was decoded; silver has each message and event once,
    with its time; gold has figures, such as traffic, gaps and sensors that stand still. All
    are Delta tables, which other programs may read at any time. Both may be in an object store
    (s3://BUCKET/PATH).
    """


def session(master: str | None) -> SparkSession:
    """A Spark session; ToolError if something that it needs is missing."""
    installed("pyspark", *_FOR_TABLES)
    from . import cluster

    begun = time.monotonic()
    made = cluster.session(master)
    click.echo(f"Spark started in {time.monotonic() - begun:.1f} s", err=True)
    return made


def installed(*names: str) -> None:
    """ToolError if one of these packages is not installed."""
    missing = [name for name in names if util.find_spec(name) is None]
    if missing:
        names_missing = " and ".join(missing)
        raise ToolError(f"{names_missing} not installed: pip install 'slotmq[telemetry]'")


def engine(master: str | None) -> Engine:
    """Spark where there is much to do, or where a master is named."""
    installed(*_FOR_TABLES)
    from .engine import Engine

    if master is not None:
        masters.check(master)
    is_named = master is not None or "SPARK_ENV_LOADED" in os.environ
    return Engine(cache(lambda: session(master)), always=is_named)


@telemetry.command()
@_harvest
@_lake
@more_commands.master_option
def ingest(harvest: str, tables: str, master: str | None) -> None:
    """Add what is new in HARVEST to TABLES: bronze, silver and gold.

    Of silver and gold only the boards are made anew that have something new. Spark starts only
    if there is much to do, or with --master.
    """
    runner = engine(master)
    from . import bronze, build, manifest, steps
    from .folder import Folder
    from .lake import Lake

    with manifest.opened(Folder(harvest)) as lines:
        there = lines.bundles()
        lake = Lake(tables).made()
        build.check(lake)
        with steps.step("bronze", runner) as told:
            taken = bronze.ingest(runner, Folder(harvest), lake)
            told.text = f"{lines.bundles(taken.first)} new bundles, {there} in total"
    if there:
        _build(runner, lake)
    for text in taken.unread[:_SHOWN]:
        click.echo(f"{harvest}/{text}", err=True)
    if taken.unread:
        count = len(taken.unread)
        raise ToolError(f"{count} of the bundles cannot be read: the next ingest tries again")


@telemetry.command()
@_lake
@more_commands.master_option
def build(tables: str, master: str | None) -> None:
    """Make silver and gold of what is new in bronze, as ingest does."""
    runner = engine(master)
    from . import build
    from .lake import Lake

    lake = Lake(tables)
    build.check(lake)
    _build(runner, lake)


def _build(runner: Engine, lake: Lake) -> None:
    from . import build, steps
    from .report_sentences import count

    for name, make in (("silver", build.build_silver), ("gold", build.build_gold)):
        with steps.step(name, runner) as told:
            told.text = f"{count(make(runner, lake), 'board')} with something new"
    for text in build.warnings(lake):
        click.echo(f"Warning: {text}", err=True)


@telemetry.command()
@_lake
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--board", "boards", multiple=True, metavar="NAME",
              help="Only this board, by name or id; repeatable [all].")  # fmt: skip
@click.option("--site", "sites", multiple=True, metavar="NAME",
              help="Only the boards of this site; repeatable [all].")  # fmt: skip
def report(tables: str, file: Path, boards: tuple[str, ...], sites: tuple[str, ...]) -> None:
    """Write an HTML page with charts of gold to FILE. It needs no other file."""
    installed(*_FOR_TABLES, "altair", "jinja2", "vl_convert")
    from . import report as page
    from .lake import Lake
    from .report_tables import Choice

    choice = Choice(frozenset(boards), frozenset(sites))
    page.write(Lake(tables), file, choice)
    click.echo(f"report: {file}")


for command in (demo.demo, *more_commands.COMMANDS):
    telemetry.add_command(command)
