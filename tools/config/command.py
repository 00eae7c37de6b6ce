"""The command `slotmq config`: check a configuration without a start, and print all keys."""

import shutil
import sys
import textwrap
from pathlib import Path

import click

from .. import boards
from ..errors import count, shown
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
    where = "this computer" if board == "HOST" else board
    good = f"no errors, {count(len(warnings), 'warning')}" if warnings else "good"
    click.echo(f"{file}: {good} for {where}")


def _print_keys() -> None:
    # Each key with its default, and below it, as wide as the terminal, what it does
    width = min(100, shutil.get_terminal_size((100, 0)).columns)
    for key in [*keys.served(), *keys.others()]:
        theirs = "" if key.mosquittos == key.ours else f" (mosquitto: {key.mosquittos or 'none'})"
        default = f"{key.ours or '-'}{theirs}  " if key.status == "served" else ""
        status = key.status + (", reloaded" if key.reloads else "")
        click.echo(f"{key.name}  {default}{status}")
        text = key.plain
        if key.accepted:
            text += f" ({key.accepted} is accepted)"
        click.echo(textwrap.fill(text, width, initial_indent="    ", subsequent_indent="    "))
