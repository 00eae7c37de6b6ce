"""More commands of `slotmq telemetry`: live, optimize, sql and pack.

What a command needs is imported when it is called.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..deploy.options import Address, login, reached
from ..deploy.options import cafile as cafile_option
from ..deploy.options import password_file as password_file_option
from ..deploy.options import user as user_option

_EVERY_S = 5.0
_folder = click.Path(path_type=Path, file_okay=False)
anywhere = click.Path(file_okay=False)  # or s3://BUCKET/PATH
master_option = click.option(
    "--master", metavar="URL", help="Spark master [local[2]; with spark-submit: its own]."
)


@click.command(short_help="Make tables while boards record.")
@click.argument("harvest", type=_folder)
@click.argument("tables", type=anywhere)
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
@click.option("--every", type=click.FloatRange(0), default=_EVERY_S, show_default=True,
              help="Seconds from one round to the next.")  # fmt: skip
@click.option("--seconds", type=click.FloatRange(0), help="End after this time [at Ctrl-C].")
@master_option
def live(
    harvest: Path, tables: str, brokers: tuple[tuple[str, int], ...], user: str | None,
    boards: tuple[str, ...], once: bool, every: float, seconds: float | None, master: str | None,
    password_file: Any, cafile: str | None,
) -> None:  # fmt: skip
    """Harvest boards again and again into HARVEST, and make TABLES of what has come.

    Started again, the command continues where it ended. A board that does not answer is left
    out for a while, two minutes at most.
    """
    from .command import engine

    runner = engine(master)
    from .lake import Lake
    from .live import Field, run, say

    brokers = tuple(reached(each, cafile) for each in brokers)
    field = Field(brokers, login(user, password_file, cafile), frozenset(boards))
    run(field, harvest, Lake(tables), runner, None if once else every, seconds,
        told=lambda text: say(text, err=False) if text else None)  # fmt: skip


@click.command(short_help="Put small files together, and delete old ones.")
@click.argument("tables", type=anywhere)
@click.option("--hours", type=click.FloatRange(0), default=168, show_default=True,
              help="How long readers may go on with an older version.")  # fmt: skip
@master_option
def optimize(tables: str, hours: float, master: str | None) -> None:
    """Put small files of bronze in TABLES together, and delete files that only versions older
    than --hours have."""
    from .command import engine

    runner = engine(master)
    from .lake import Lake
    from .optimize import compact, vacuum
    from .schemas import ALL, BRONZE

    lake = Lake(tables)
    lake.need(BRONZE)
    click.echo(f"bronze: {compact(runner, lake)} files put together")
    for name, count in vacuum(lake, ALL, hours):
        click.echo(f"{name}: {count} files deleted")


@click.command(short_help="Print SQL that makes views of the tables.")
@click.argument("tables", type=anywhere)
@click.option("--for", "dialect", type=click.Choice(("duckdb", "spark")), default="duckdb",
              show_default=True, help="Whose SQL.")  # fmt: skip
@click.option("--delta", "by_delta", is_flag=True,
              help="Views that follow the tables: DuckDB needs its extension delta, Spark Delta's"
              " jar.")  # fmt: skip
def sql(tables: str, dialect: str, by_delta: bool) -> None:
    """Print a view for each table of TABLES, of the files that it has now."""
    from .command import installed

    installed("pyarrow", "deltalake")
    from . import views
    from .lake import Lake
    from .schemas import BRONZE

    lake = Lake(tables)
    lake.need(BRONZE)
    for statement in views.statements(lake, dialect, by_delta=by_delta):
        click.echo(statement)


@click.command(short_help="Write slotmq as an archive for spark-submit.")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
def pack(file: Path) -> None:
    """Write the packages of slotmq to FILE (.zip), for `spark-submit --py-files`."""
    from .cluster import archive

    click.echo(f"{archive(file)}: {file.stat().st_size:,} bytes")


COMMANDS = (live, optimize, sql, pack)
