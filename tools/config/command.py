"""The command `slotmq config`: check a configuration without a start, and print all keys."""

import sys
from pathlib import Path

import click
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .. import boards
from ..errors import shown
from . import check as checking
from . import keys


@click.group(invoke_without_command=True)
@click.option("--keys", "lists", is_flag=True, help="Print each key, also those not served.")
@click.pass_context
def config(context: click.Context, lists: bool) -> None:
    """Check a configuration file, or print the keys that it may have."""
    if lists:
        _print_keys()
    elif not context.invoked_subcommand:
        raise click.UsageError("give `check FILE` or --keys")


@config.command()
@click.option(
    "--board",
    type=click.Choice(boards.names()),
    default="HOST",
    show_default=True,
    help="Check with the limits of this board.",
)
@click.argument("file", type=click.Path(path_type=Path))
def check(file: Path, board: str) -> None:
    """Check the configuration FILE without a start; status 1: the broker would not start.

    Prints all errors and warnings. A file or folder that FILE names, and that is not here, is a
    warning; a password_file and an acl_file are checked, too."""
    errors, warnings = checking.check(file, board)
    for text in warnings:
        click.echo(f"warning: {shown(text)}", err=True)
    for text in errors:
        click.echo(shown(text), err=True)
    if errors:
        sys.exit(1)
    click.echo(f"{file}: good for {board}")


def _print_keys() -> None:
    table = Table("key", "default", "mosquitto's", "", "", box=box.SIMPLE_HEAD)
    for key in [*keys.served(), *keys.others()]:
        text = key.plain
        if key.accepted:
            text += f" ({key.accepted} is accepted)"
        status = key.status + (", reloaded" if key.reloads else "")
        table.add_row(*map(escape, (key.name, key.ours, key.mosquittos, status, text)))
    Console(width=None if sys.stdout.isatty() else 160).print(table)
