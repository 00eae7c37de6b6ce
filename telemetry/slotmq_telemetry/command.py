"""`slotmq telemetry`: the commands from a harvest to a report. What one needs is imported when it
is called; Spark is loaded only where there is much to do."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import cache
from importlib import util
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from slotmq_tools.deploy.options import Address, login, reached
from slotmq_tools.deploy.options import cafile as cafile_option
from slotmq_tools.deploy.options import password_file as password_file_option
from slotmq_tools.deploy.options import user as user_option
from slotmq_tools.errors import ToolError, count
from slotmq_tools.progress import bar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from .build import Built
    from .engine import Engine
    from .lake import Lake

_FOR_TABLES = ("pyarrow", "deltalake", "cbor2", "orjson")
_FOR_PAGES = (*_FOR_TABLES, "altair", "jinja2", "vl_convert")
_SHOWN = 5  # bundles that cannot be read
_NAMES = {
    "pyspark": "Spark",
    "py4j": "Spark",
    "pyarrow": "a file of a table",
    "deltalake": "Delta",
}
# How the rows of a table are called.
_ROWS = {"bronze": "record", "quarantine": "in quarantine", "silver/messages": "message"}
_folder = click.Path(path_type=Path, file_okay=False)
_anywhere = click.Path(file_okay=False)  # or s3://BUCKET/PATH
_lake = click.argument("tables", type=_anywhere)
_master = click.option(
    "--master", metavar="URL", help="Spark master [local[2]; with spark-submit: its own]."
)


class _Duration(click.FloatRange):
    """A range of which NaN is not."""

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        found = float(super().convert(value, param, ctx))
        if isnan(found):
            self.fail(f"{value} is not a number", param, ctx)
        return found


_duration = _Duration(0, 1e8)


class OneLine(click.Group):
    """Prints an error of Spark or of a damaged file as one line, like others."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
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


def _installed(*names: str) -> None:
    """ToolError if one of these packages is not installed."""
    if missing := " and ".join(name for name in names if util.find_spec(name) is None):
        raise ToolError(f"{missing} not installed: pip install slotmq-telemetry")


def _session(master: str | None) -> SparkSession:
    _installed("pyspark", *_FOR_TABLES)
    from . import session

    return session.start(master)


def _engine(master: str | None) -> Engine:
    """Spark where there is much to do, or where a master is named. ToolError: it is none."""
    _installed(*_FOR_TABLES)
    from .engine import Engine

    if master is not None:
        _installed("pyspark")
        from .session import check

        check(master)
    is_named = master is not None or "SPARK_ENV_LOADED" in os.environ
    return Engine(cache(lambda: _session(master)), always=is_named)


def step(name: str, engine: Engine, work: Callable[[], str]) -> None:
    """Do it, with a bar on a terminal; then say what it has done, how many rows that are, and how
    long it took."""
    begun = time.monotonic()
    engine.rows.clear()
    with bar(name) as engine.progress:
        told = work()
    rows = {table: number for table, number in engine.rows.items() if number}
    named = [f"{rows[table]:,} {word}" if " " in word else count(rows[table], word)
             for table, word in _ROWS.items() if table in rows]  # fmt: skip
    if rows:
        named = named or [count(sum(rows.values()), "row")]
        told = f"{', '.join([told, *named])} in {time.monotonic() - begun:.1f} s"
    click.echo(f"{name}: {told}")


@telemetry.command()
@click.argument("harvest", type=_anywhere)
@_lake
@_master
def ingest(harvest: str, tables: str, master: str | None) -> None:
    """Add what is new in HARVEST to TABLES: bronze, silver and gold.

    Of silver and gold only the boards are made anew that have something new. Spark starts only
    if there is much to do, or with --master.
    """
    engine = _engine(master)
    from . import bronze, build, manifest
    from .folder import Folder
    from .lake import Lake

    unread: list[str] = []
    with manifest.opened(Folder(harvest)) as lines:
        there = lines.bundles()
        lake = Lake(tables).made()
        build.check(lake)

        def take() -> str:
            taken = bronze.ingest(engine, Folder(harvest), lake)
            unread.extend(taken.unread)
            return f"{count(lines.bundles(taken.first), 'new bundle')}, {there:,} in total"

        step("bronze", engine, take)
    failed = _build(engine, lake) if there else []
    _complain([f"{harvest}/{text}" for text in unread])
    _complain(failed)
    some = [f"{len(unread):,} of the bundles cannot be read"] * bool(unread)
    some += [f"{count(len(failed), 'board')} cannot be built"] * bool(failed)
    if some:
        raise ToolError(f"{', and '.join(some)}: the next ingest tries again")


@telemetry.command()
@_lake
@_master
def build(tables: str, master: str | None) -> None:
    """Make silver and gold of what is new in bronze, as ingest does."""
    engine = _engine(master)
    from . import build
    from .lake import Lake

    lake = Lake(tables)
    build.check(lake)
    if failed := _build(engine, lake):
        _complain(failed)
        raise ToolError(
            f"{count(len(failed), 'board')} cannot be built: the next build tries again"
        )


def _complain(texts: list[str]) -> None:
    for text in texts[:_SHOWN]:
        click.echo(text, err=True)


def _build(engine: Engine, lake: Lake) -> list[str]:
    """-> boards that cannot be built, and why."""
    from . import build

    failed: list[str] = []

    def told(make: Callable[[Engine, Lake], Built]) -> str:
        made = make(engine, lake)
        failed.extend(made.failed)
        return f"{count(made.boards, 'board')} with something new"

    step("silver", engine, lambda: told(build.build_silver))
    step("gold", engine, lambda: told(build.build_gold))
    for text in build.warnings(lake):
        click.echo(f"Warning: {text}", err=True)
    return failed


@telemetry.command()
@_lake
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--board", "boards", multiple=True, metavar="NAME",
              help="Only this board, by name or id; repeatable [all].")  # fmt: skip
@click.option("--site", "sites", multiple=True, metavar="NAME",
              help="Only the boards of this site; repeatable [all].")  # fmt: skip
def report(tables: str, file: Path, boards: tuple[str, ...], sites: tuple[str, ...]) -> None:
    """Write an HTML page with charts of gold to FILE. It needs no other file."""
    _installed(*_FOR_PAGES)
    from . import report as page
    from .lake import Lake
    from .report_tables import Choice

    page.write(Lake(tables), file, Choice(frozenset(boards), frozenset(sites)))
    click.echo(f"report: {file}")


@telemetry.command(short_help="Make tables while boards record.")
@click.argument("harvest", type=_folder)
@_lake
@click.option(
    "--broker", "brokers", type=Address(), multiple=True, required=True,
    help="The boards' broker; repeatable.",
)  # fmt: skip
@user_option
@password_file_option
@cafile_option
@click.option(
    "--board", "boards", multiple=True, metavar="ID", help="Only this board; repeatable [all]."
)
@click.option("--once", is_flag=True, help="Read what is there now, then end.")
@click.option("--every", type=_duration, default=5.0, show_default=True,
              help="Seconds from one round to the next.")  # fmt: skip
@click.option("--seconds", type=_duration, help="End after this time [at Ctrl-C].")
@_master
def live(
    harvest: Path, tables: str, brokers: tuple[tuple[str, int], ...], user: str | None,
    boards: tuple[str, ...], once: bool, every: float, seconds: float | None, master: str | None,
    password_file: Any, cafile: str | None,
) -> None:  # fmt: skip
    """Harvest boards again and again into HARVEST, and make TABLES of what has come.

    Started again, the command continues where it ended. A board that does not answer is left
    out for a while, two minutes at most.
    """
    engine = _engine(master)
    from .lake import Lake
    from .live import Field, run

    brokers = tuple(reached(each, cafile) for each in brokers)
    field = Field(brokers, login(user, password_file, cafile), frozenset(boards))
    run(field, harvest, Lake(tables), engine, None if once else every, seconds)


@telemetry.command(short_help="Put small files together, and delete old ones.")
@_lake
@click.option("--hours", type=_duration, default=168, show_default=True,
              help="How long readers may go on with an older version.")  # fmt: skip
@_master
def optimize(tables: str, hours: float, master: str | None) -> None:
    """Put small files of bronze in TABLES together, and delete files that only versions older
    than --hours have."""
    engine = _engine(master)
    from .lake import Lake
    from .optimize import compact, vacuum
    from .schemas import ALL, BRONZE

    lake = Lake(tables)
    lake.need(BRONZE)
    click.echo(f"bronze: {count(compact(engine, lake), 'file')} put together")
    for name, gone in vacuum(lake, ALL, hours):
        click.echo(f"{name}: {count(gone, 'file')} deleted")


@telemetry.command(short_help="Print SQL that makes views of the tables.")
@_lake
@click.option("--for", "dialect", type=click.Choice(("duckdb", "spark")), default="duckdb",
              show_default=True, help="Whose SQL.")  # fmt: skip
@click.option("--delta", "by_delta", is_flag=True,
              help="Views that follow the tables: DuckDB needs its extension delta, Spark Delta's"
              " jar.")  # fmt: skip
def sql(tables: str, dialect: str, by_delta: bool) -> None:
    """Print a view for each table of TABLES, of the files that it has now."""
    _installed("pyarrow", "deltalake")
    from . import views
    from .lake import Lake
    from .schemas import BRONZE

    lake = Lake(tables)
    lake.need(BRONZE)
    for statement in views.statements(lake, dialect, by_delta=by_delta):
        click.echo(statement)


@telemetry.command(short_help="Write slotmq as an archive for spark-submit.")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
def pack(file: Path) -> None:
    """Write the packages of slotmq to FILE (.zip), for `spark-submit --py-files`."""
    from .cluster import archive

    click.echo(f"{archive(file)}: {file.stat().st_size:,} bytes")


@telemetry.command(short_help="Make tables and a report of ten days of a greenhouse.")
@click.argument("folder", type=_folder)
@click.pass_context
def demo(ctx: click.Context, folder: Path) -> None:
    """Write the recordings of three simulated boards, tables of them, and a report.

    Everything is written to FOLDER, which must be empty or not exist.
    """
    from . import names
    from .season import greenhouse

    if folder.exists() and any(folder.iterdir()):
        raise ToolError(f"{folder} is not empty")
    _installed(*_FOR_PAGES)
    bundles, tables = folder / "harvest", folder / "tables"
    grown = greenhouse.grow(bundles, start=greenhouse.latest())
    click.echo(f"greenhouse: {len(grown.taken):,} records of {len(greenhouse.NAMES)} boards")
    tables.mkdir()
    (tables / names.FILE).write_text(greenhouse.TOML)
    ctx.invoke(ingest, harvest=bundles, tables=tables)
    ctx.invoke(report, tables=tables, file=folder / "report.html")
