"""More commands of `slotmq telemetry`: live, optimize, sql and pack.

What a command needs is imported when it is called.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..deploy.options import LOGIN_PASSWORD, Address, login
from ..deploy.options import cafile as cafile_option
from ..deploy.options import password_file as password_file_option
from ..deploy.options import user as user_option
from ..errors import ToolError

if TYPE_CHECKING:
    from ..deploy.mqtt_client import Login

_EVERY_S = 5.0
_folder = click.Path(path_type=Path, file_okay=False)


@click.command(short_help="Read the boards' rings while they record.")
@click.argument("tables", type=_folder)
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
@click.option(
    "--most", type=click.IntRange(1), help="Largest number of records in a batch [no limit]."
)
@click.option("--once", is_flag=True, help="Read what is there now, then end.")
@click.option("--every", type=click.FloatRange(0), default=_EVERY_S, show_default=True,
              help="Seconds from one batch to the next.")  # fmt: skip
@click.option("--seconds", type=click.FloatRange(0), help="End after this time [at Ctrl-C].")
@click.option(
    "--master", metavar="URL", help="Spark master [local[2]; with spark-submit: its own]."
)
def live(
    tables: Path, brokers: tuple[tuple[str, int], ...], user: str | None, boards: tuple[str, ...],
    most: int | None, once: bool, every: float, seconds: float | None, master: str | None,
    password_file: Any, cafile: str | None,
) -> None:  # fmt: skip
    """Read what boards record into the folder TABLES, while they record: bronze, silver, gold.

    The records are read from the boards' flash. Started again, the command continues where it
    ended. What a board has overwritten meanwhile is named in the quarantine table.
    """
    from .command import session
    from .lake import Lake
    from .live import run

    options = {"brokers": ",".join(f"{host}:{port}" for host, port in brokers)}
    who = login(user, password_file, cafile)
    options |= {"user": user} if user else {}
    options |= {"cafile": cafile} if cafile else {}
    if who.password:
        os.environ[LOGIN_PASSWORD] = who.password  # where the tasks of Spark find it
    options |= {"boards": ",".join(boards)} if boards else {}
    options |= {"maxRecordsPerTrigger": str(most)} if most else {}
    lake = Lake(tables).made()
    if once:
        _need_one(brokers, who, boards)
    spark = session(master)
    try:
        found = run(spark, lake, options, None if once else every, seconds)
    finally:
        spark.stop()
    click.echo(f"{found:,} records")


def _need_one(brokers: Sequence[tuple[str, int]], who: Login, boards: tuple[str, ...]) -> None:
    """ToolError if no board is there; checked before Spark starts, which takes longer."""
    from ..harvest.network import NOBODY, Ring

    failed = []
    for address in brokers:
        try:
            with closing(Ring(address, who)) as ring:
                heads = ring.heads()
        except ToolError as error:
            failed.append(error)
            continue
        if heads.keys() & set(boards) if boards else heads:
            return
    missing = f"there is no board {', '.join(boards)} behind these brokers"
    raise failed[0] if len(failed) == len(brokers) else ToolError(missing if boards else NOBODY)


@click.command(short_help="Delete files that no table needs any more.")
@click.argument("tables", type=_folder)
@click.option("--hours", type=click.FloatRange(0), default=168, show_default=True,
              help="How long readers may go on with an older version.")  # fmt: skip
def optimize(tables: Path, hours: float) -> None:
    """Delete the files of TABLES that only versions older than --hours have."""
    from .command import installed

    installed("pyarrow", "deltalake")
    from .lake import Lake, vacuum
    from .schemas import ALL, BRONZE

    lake = Lake(tables)
    lake.need(BRONZE)
    for name, count in vacuum(lake, ALL, hours):
        click.echo(f"{name}: {count} files deleted")


@click.command(short_help="Print SQL that makes views of the tables.")
@click.argument("tables", type=_folder)
def sql(tables: Path) -> None:
    """Print a view for each table of TABLES, for DuckDB, of the files that it has now."""
    from .command import installed

    installed("pyarrow", "deltalake")
    from .lake import Lake
    from .schemas import ALL, BRONZE

    lake = Lake(tables)
    lake.need(BRONZE)
    for table in ALL:
        files = [f"'{lake.folder / table.name / path}'" for path in lake.files(table)]
        if files:
            listed = ",\n  ".join(files)
            click.echo(
                f"create or replace view {table.name.replace('/', '_')} as select * from"
                f" read_parquet([\n  {listed}\n], hive_partitioning = true);"
            )


@click.command(short_help="Write slotmq as an archive for spark-submit.")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
def pack(file: Path) -> None:
    """Write the packages of slotmq to FILE (.zip), for `spark-submit --py-files`."""
    from .cluster import archive

    click.echo(f"{archive(file)}: {file.stat().st_size:,} bytes")


COMMANDS = (live, optimize, sql, pack)
