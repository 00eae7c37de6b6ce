"""`slotmq telemetry`: its commands and options. Spark is loaded by those that use it."""

from __future__ import annotations

from importlib import util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import ToolError
from ..harvest.manifest import locked
from . import demo, manifest, more_commands
from .lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FOR_SPARK = ("pyspark", "pyarrow", "cbor2")
_folder = click.Path(path_type=Path, file_okay=False)
_harvest = click.argument("harvest", type=_folder)
_lake = click.argument("tables", type=_folder)
_master = click.option(
    "--master", metavar="URL", help="Spark's master [local[2]; under spark-submit its own]."
)


class OneLine(click.Group):
    """What the system or Spark refuses is one line, as every complaint."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except OSError as error:
            told = f"{error.filename}: " if error.filename else ""
            raise ToolError(f"{told}{error.strerror or error}") from None
        except Exception as error:
            if not type(error).__module__.startswith(("pyspark.", "py4j.")):
                raise
            raise ToolError(f"Spark: {reason(str(error))}") from None


def reason(text: str) -> str:
    """The line of a Java trace that says most: the innermost cause, or else the first."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["it failed"]
    causes = [line for line in lines if line.startswith("Caused by: ")]
    return causes[-1].removeprefix("Caused by: ") if causes else lines[0]


@click.group(cls=OneLine)
def telemetry() -> None:
    """Make tables out of what boards have recorded, with Spark.

    HARVEST is a folder that `slotmq harvest` fills, TABLES one that these commands make:
    bronze holds the records as they are, silver messages and events once each and on one
    clock, gold what an analyst asks first. Each is a folder of Parquet files, which anything
    may read at any time.
    """


def session(master: str | None) -> SparkSession:
    """A session, or one line that says what is missing for it."""
    installed(*_FOR_SPARK)
    from . import cluster

    return cluster.session(master)


def installed(*names: str) -> None:
    """ToolError: one of these packages is not."""
    missing = [name for name in names if util.find_spec(name) is None]
    if missing:
        told = " and ".join(missing)
        raise ToolError(f"{told} not installed: pip install 'slotmq[telemetry]'")


@telemetry.command()
@_harvest
@_lake
@_master
def bronze(harvest: Path, tables: Path, master: str | None) -> None:
    """Take what is new in HARVEST into TABLES."""
    lines = manifest.read(harvest)
    lake = Lake(tables).made()
    installed(*_FOR_SPARK)
    from . import bronze as step

    step.check_folder(lake, harvest)  # a session takes its time to begin
    taken = step.ingest(session(master), harvest, lake)
    there = sum(bool(line.path) for line in lines)  # others have gone into larger ones
    new = sum(bool(line.path) for line in lines[taken.first :])
    click.echo(f"bronze: {new} bundles taken, {there} are there")


def made_anew(part: str, source: str, tables: Path, master: str | None) -> None:
    """Silver or gold, from what is before it."""
    lake = Lake(tables).need(source)
    spark = session(master)
    from . import build

    make, names = {
        "silver": (build.build_silver, build.SILVER),
        "gold": (build.build_gold, build.GOLD),
    }[part]
    make(spark, lake)
    click.echo(f"{part}: {', '.join(names)}")


@telemetry.command()
@_lake
@_master
def silver(tables: Path, master: str | None) -> None:
    """Make silver anew from bronze."""
    made_anew("silver", "bronze", tables, master)


@telemetry.command()
@_lake
@_master
def gold(tables: Path, master: str | None) -> None:
    """Make gold anew from silver."""
    made_anew("gold", "silver", tables, master)


@telemetry.command()
@_lake
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
def report(tables: Path, file: Path) -> None:
    """Write gold as a page with pictures into FILE."""
    lake = Lake(tables).need("gold")
    installed("pyarrow", "matplotlib", "jinja2")
    from . import report as page

    page.write(lake, file)
    click.echo(f"report: {file}")


@telemetry.command()
@_harvest
@_lake
@_master
@click.pass_context
def ingest(ctx: click.Context, harvest: Path, tables: Path, master: str | None) -> None:
    """All of it: bronze, silver and gold."""
    ctx.invoke(bronze, harvest=harvest, tables=tables, master=master)
    ctx.invoke(silver, tables=tables, master=master)
    ctx.invoke(gold, tables=tables, master=master)


@telemetry.command()
@click.argument("harvest", type=_folder)
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True)
@click.option("--boards", type=click.IntRange(1, 200), default=4, show_default=True)
@click.option("--steps", type=click.IntRange(1), default=400, show_default=True)
def season(harvest: Path, seed: int, boards: int, steps: int) -> None:
    """Simulate boards in the field, and fill HARVEST with what they record."""
    if (harvest / "MANIFEST.jsonl").exists():
        raise ToolError(f"{harvest} holds a harvest already")
    generate(harvest, seed, boards, steps)


def generate(harvest: Path, seed: int = 1, boards: int = 4, steps: int = 400) -> None:
    """A season, behind what the harvest folder has."""
    from .season.world import Knobs
    from .season.world import season as live

    knobs = Knobs(boards=boards, steps=steps, segment_size=4096, ring=16, silences=0.01)
    with locked(harvest) as there:
        before = len(there.lines)
        lived = live(harvest, seed, knobs, before)
    records = len({(t.entry.board, t.entry.boot, t.entry.seq) for t in lived.harvest.taken})
    bundles = lived.harvest.lines - before
    click.echo(f"season: {boards} boards, {bundles} bundles, {records:,} records")


for command in (demo.demo, *more_commands.COMMANDS):
    telemetry.add_command(command)
