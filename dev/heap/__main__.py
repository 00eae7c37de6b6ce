"""`python -m slotmq_dev.heap`: prints the heap that code, tables and clients need."""

from pathlib import Path

import click

from slotmq_tools import boards
from slotmq_tools.errors import ToolError

from .. import figures
from .measure import measure, users_and_rules
from .table import markdown, text
from .tables_bytes import write as write_boards

USERS, RULES = 8, 20
PAGE_BOARDS = ("RPI_PICO_W", "ESP32_GENERIC")


@click.command()
@click.option("--board", type=click.Choice(boards.names()), default="RPI_PICO_W")
@click.option("--heap", "heap_kb", type=int, default=0, help="KB, instead of the board's.")
@click.option(
    "--write",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Write the table of the boards into this file instead, between its markers.",
)
@click.option(
    "--write-boards",
    "folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Write the heap that is free for the tables into the board.json files of this folder.",
)
def main(board: str, heap_kb: int, file: Path | None, folder: Path | None) -> None:
    """Measure the broker on 32-bit MicroPython with a board's limits and heap."""
    try:
        if file:
            figures.write(file, heap=markdown([measure(name) for name in PAGE_BOARDS]))
        elif folder:
            write_boards(folder)
        else:
            click.echo("\n".join(text(measure(board, heap_kb * 1024))))
            tables, code = users_and_rules(board, USERS, RULES)
            click.echo(f"{USERS} users and {RULES} rules: {tables:,} tables, {code:,} code")
    except ToolError as error:
        raise click.ClickException(str(error)) from None


if __name__ == "__main__":
    main()
