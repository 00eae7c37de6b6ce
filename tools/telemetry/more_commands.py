"""Commands of `slotmq telemetry` beside the way from bronze to gold: live, delta, pack.

What they need is loaded when they are called.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import click

from ..deploy.options import LOGIN, Address
from ..errors import ToolError

_EVERY_S = 5.0
_folder = click.Path(path_type=Path, file_okay=False)


@click.command(short_help="Read the boards' rings while they record.")
@click.argument("tables", type=_folder)
@click.option(
    "--broker", "brokers", type=Address(), multiple=True, required=True,
    help="Where boards are; may be given again.",
)  # fmt: skip
@click.option("--user", help="Come in as this user, with the password in $SLOTMQ_PASSWORD.")
@click.option("--board", "boards", multiple=True, metavar="ID", help="Only this one's [all].")
@click.option("--most", type=click.IntRange(1), help="Records of a batch [all there are].")
@click.option("--once", is_flag=True, help="End with what is there now.")
@click.option("--every", type=click.FloatRange(0), default=_EVERY_S, show_default=True,
              help="Seconds between two looks.")  # fmt: skip
@click.option("--seconds", type=click.FloatRange(0), help="End after so long [Ctrl-C].")
@click.option("--master", help="Where Spark runs [local[2], or what spark-submit says].")
def live(
    tables: Path, brokers: tuple[tuple[str, int], ...], user: str | None, boards: tuple[str, ...],
    most: int | None, once: bool, every: float, seconds: float | None, master: str | None,
) -> None:  # fmt: skip
    """Read what boards record into the bronze tables of the folder TABLES, as it comes.

    The boards' own flash is the log: started again, it goes on where it was, and what a
    board has overwritten meanwhile is named in the quarantine table.
    """
    from .command import session
    from .lake import Lake
    from .live import run

    options = {"brokers": ",".join(f"{host}:{port}" for host, port in brokers)}
    options |= {"user": user} if user else {}
    options |= {"boards": ",".join(boards)} if boards else {}
    options |= {"maxRecordsPerTrigger": str(most)} if most else {}
    lake = Lake(tables).made()
    if once:
        _need_one(brokers, user, boards)
    spark = session(master)
    try:
        found = run(spark, lake, options, None if once else every, seconds)
    finally:
        spark.stop()
    click.echo(f"{found:,} records")


def _need_one(
    brokers: Sequence[tuple[str, int]], user: str | None, boards: tuple[str, ...]
) -> None:
    """ToolError if no board is there: told before Spark starts, which takes longer."""
    from ..deploy.mqtt_client import Login
    from ..harvest.network import NOBODY, Ring

    failed = []
    for address in brokers:
        try:
            with closing(Ring(address, Login(user, os.environ.get(LOGIN)))) as ring:
                heads = ring.heads()
        except ToolError as error:
            failed.append(error)
            continue
        if heads.keys() & set(boards) if boards else heads:
            return
    missing = f"there is no board {', '.join(boards)} behind these brokers"
    raise failed[0] if len(failed) == len(brokers) else ToolError(missing if boards else NOBODY)


@click.command(short_help="Keep the tables as Delta tables too.")
@click.argument("tables", type=_folder)
@click.argument("target")
def delta(tables: Path, target: str) -> None:
    """Bring the Delta tables in TARGET, a folder or an object store's address, up to date.

    bronze grows by the batches that are new; silver and gold are replaced when they were made
    anew. Each step is one commit, and running it again does nothing. It takes no Spark.
    """
    from .delta import bring
    from .lake import Lake

    for name, rows in bring(Lake(tables), target):
        click.echo(f"{name}: {rows:,} rows")


@click.command(short_help="Write the archive that executors import from.")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
def pack(file: Path) -> None:
    """Write the packages of slotmq as FILE.zip, for `spark-submit --py-files`."""
    from .cluster import archive

    click.echo(f"{archive(file)}: {file.stat().st_size:,} bytes")


COMMANDS = (live, delta, pack)
