"""`slotmq telemetry demo`: ten days of a greenhouse with a few faults, as tables and a report that
names them (season/greenhouse.py).
"""

from __future__ import annotations

import time
from pathlib import Path

import click

from ..errors import ToolError


@click.command(short_help="Make tables and a report of ten days of a greenhouse.")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.pass_context
def demo(ctx: click.Context, folder: Path) -> None:
    """Write the recordings of three simulated boards, tables of them, and a report.

    Everything is written to FOLDER, which must be empty or not exist.
    """
    from . import command, names
    from .season import greenhouse
    from .season.board import DAY

    if folder.exists() and any(folder.iterdir()):
        raise ToolError(f"{folder} is not empty")
    command.installed("pyarrow", "deltalake", "cbor2", "altair", "jinja2", "vl_convert")
    bundles, tables, page = folder / "harvest", folder / "tables", folder / "report.html"
    start = (int(time.time() * 1000) // DAY - greenhouse.DAYS) * DAY
    grown = greenhouse.grow(bundles, start=start)
    click.echo(f"greenhouse: {len(grown.taken):,} records of {len(greenhouse.NAMES)} boards")
    tables.mkdir()
    (tables / names.FILE).write_text(greenhouse.TOML)
    ctx.invoke(command.ingest, harvest=bundles, tables=tables)
    ctx.invoke(command.report, tables=tables, file=page)
