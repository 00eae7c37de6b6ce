"""The command `slotmq passwd`."""

from contextlib import ExitStack
from pathlib import Path

import click

from . import passwd
from .deploy.options import ask_password, piped_password
from .errors import shown


@click.command("passwd")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.argument("user", required=False)
@click.option("--stdin", "piped", is_flag=True, help="Read the password from standard input.")
@click.option(
    "--port",
    "device",
    metavar="DEV",
    help="FILE is on the board at this serial port; the broker there starts again.",
)
@click.option("-D", "--delete", is_flag=True, help="Delete the user's line from the file.")
@click.option("--list", "listed", is_flag=True, help="Print the users, without their keys.")
@click.option(
    "--iterations",
    type=click.IntRange(passwd.ITERATIONS, passwd.ITERATIONS_MAX),
    default=passwd.ITERATIONS,
    show_default=True,
    help="More make guessing slower, and each login too.",
)
def change_password(
    file: Path,
    user: str | None,
    piped: bool,
    device: str | None,
    delete: bool,
    listed: bool,
    iterations: int,
) -> None:
    """Add USER to FILE, the `password_file` of a configuration, or change the password there."""
    if delete and piped:
        raise click.UsageError("--delete takes no password")
    if (user is None) != listed or (listed and (delete or piped)):
        raise click.UsageError("expected a USER, or --list alone")
    password = ""
    if user and not delete:
        passwd.check_name(user)  # before the prompt
        password = (
            piped_password()
            if piped
            else ask_password("Password", "--stdin", confirmation_prompt=True)
        )
        passwd.check(user, password)
    with ExitStack() as stack:
        here = file
        if device:
            from .deploy import repl, users  # with the packages of the extra `deploy`

            line = stack.enter_context(repl.Repl(device))
            here = stack.enter_context(users.edited(line, str(file)))
        if user is None:
            for name, kind in passwd.users(here):
                click.echo(f"{shown(name)}  ({kind})")
        elif delete:
            passwd.delete(here, user)
            click.echo(f"{user} deleted from {file}")
        else:
            existed = passwd.put(here, user, password, iterations)
            click.echo(f"{user} {'changed' if existed else 'added'} in {file}")
            if iterations > (passwd.MANY_ON_BOARD if device else passwd.MANY_ITERATIONS):
                click.echo(passwd.SLOW.format(f"{iterations:,}"), err=True)
    if device:
        click.echo("the board starts again")
    elif user:
        click.echo("a broker that runs reads it again at SIGHUP")
