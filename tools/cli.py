"""The command `slotmq`: its options, and the functions they call.

The default command is `run`: `slotmq -c FILE -p 1884 -v -d` works as it does with mosquitto.
"""

import os
import sys
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import click

from . import boards
from .errors import ToolError, shown, shown_lines
from .run import daemon, launcher, orders
from .run import small as little

_RUN = "run"
# Commands that are imported when they are used, since a broker on CPython would keep them in its
# memory: module, function, the extra with their packages
_LATER = {
    "acl": ("deploy.commands", "acl", "deploy"),
    "backup": ("deploy.commands", "backup", "deploy"),
    "certs": ("certs", "certs", "certs"),
    "config": ("config.command", "config", "deploy"),
    "deploy": ("deploy.commands", "deploy", "deploy"),
    "logs": ("deploy.commands", "logs", "deploy"),
    "passwd": ("passwd_command", "change_password", "deploy"),
    "sim": ("scenario.command", "sim", "sim"),
    "status": ("deploy.status", "status", "deploy"),
}
# Commands of another distribution, entry points of this group
_DISTRIBUTION = "slotmq-telemetry"
_GROUP = "slotmq.commands"
_OF_TELEMETRY = ("harvest", "telemetry")
# MicroPython starts with the least, and counts the bits of its heap in 32 bits.
HEAP_KB = (16, 262144)


class _Slotmq(click.Group):
    """A group whose default command is `run`, and which prints a ToolError without traceback."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        commands = self.list_commands(ctx)
        own = {*commands, "--help", "--version"}
        if args and args[0] not in own and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], commands, 1)
            raise click.UsageError(
                f"no command {args[0]}" + (f"; did you mean {near[0]}?" if near else ""), ctx
            )
        return super().parse_args(ctx, args if args and args[0] in own else [_RUN, *args])

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *_LATER, *_OF_TELEMETRY})

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.list_commands(ctx):
            return None
        try:
            if name in _OF_TELEMETRY:
                found = _installed(name)
            elif name in _LATER:
                module, function, _ = _LATER[name]
                found = getattr(import_module(f".{module}", __package__), function)
            else:
                found = super().get_command(ctx, name)
        except ModuleNotFoundError as error:
            return _missing(name, error)
        assert isinstance(found, click.Command)
        return found

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ToolError as error:
            raise click.ClickException(shown_lines(str(error))) from None
        except BrokenPipeError:
            raise  # who reads the output has seen enough
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            raise click.ClickException(shown(f"{where}{error.strerror or error}")) from None
        except ModuleNotFoundError as error:
            name = ctx.invoked_subcommand or _RUN
            raise click.ClickException(f"slotmq {name} {_needs(name, error)}") from None


def _installed(name: str) -> Any:
    for point in entry_points(group=_GROUP, name=name):
        return point.load()
    raise ModuleNotFoundError(name=_DISTRIBUTION)


def _needs(name: str, error: ModuleNotFoundError) -> str:
    if (error.name or "").startswith("slotmq") and error.name != _DISTRIBUTION:
        raise error
    if name in _OF_TELEMETRY:
        return f"needs {error.name}: pip install {_DISTRIBUTION}"
    _, _, extra = _LATER.get(name, ("", "", "deploy"))
    return f"needs {error.name}: pip install 'slotmq[{extra}]'"


def _missing(name: str, error: ModuleNotFoundError) -> click.Command:
    # A command whose packages are not installed says which ones.
    text = _needs(name, error)

    def refuse(words: tuple[str, ...]) -> None:
        raise ToolError(f"slotmq {name} {text}")

    return click.Command(
        name,
        context_settings={"ignore_unknown_options": True, "help_option_names": []},
        callback=refuse,
        params=[click.Argument(["words"], nargs=-1, type=click.UNPROCESSED)],
        short_help=f"({text})",
    )


_board = click.option(
    "--board",
    type=click.Choice(boards.names()),
    default="HOST",
    show_default=True,
    help="Use the limits of this board, and its heap under MicroPython.",
)


@click.group(cls=_Slotmq)
@click.version_option(package_name="slotmq", message="%(package)s %(version)s")
def main() -> None:
    """An MQTT broker with tables of fixed size, for MicroPython boards and for CPython."""


@main.command(_RUN)
@click.option("-c", "config", metavar="FILE", help="Read this configuration file.")
@click.option("-p", "port", type=click.IntRange(1, 65535), help="Listen on this port [1883].")
@click.option("-v", "verbose", is_flag=True, help="Log everything (`log_type all`).")
@click.option("-d", "background", is_flag=True, help="Run in the background.")
@click.option("--host", metavar="ADDR", help="Listen on this address [loopback].")
@click.option(
    "--runtime",
    type=click.Choice(["cpython", "micropython"]),
    default="cpython",
    show_default=True,
    help="Run on CPython or on 32-bit MicroPython.",
)
@_board
@click.option(
    "--heap",
    "heap_kb",
    metavar="KB",
    type=click.IntRange(*HEAP_KB),
    help="Size of MicroPython's heap [the board's].",
)
@click.option(
    "--small",
    is_flag=True,
    help="Use little memory, as on a Raspberry Pi Zero: 64 clients, and no process beside it.",
)
def run(
    config: str | None,
    port: int | None,
    verbose: bool,
    background: bool,
    host: str | None,
    runtime: str,
    board: str,
    heap_kb: int | None,
    small: bool,
) -> None:
    """Run the broker (the default command)."""
    if heap_kb and runtime != "micropython":
        raise click.UsageError("--heap needs --runtime micropython: CPython has no fixed heap")
    if small and board != "HOST":
        raise click.UsageError("--small has limits of its own: leave --board out")
    orders.ignore_signals()
    if small:
        board = little.BOARD
    argv = broker_argv(config=config, port=port, verbose=verbose, host=host, board=board)
    if small and runtime == "cpython":
        keeps_log = background and daemon.keeps_log(config, board)
        little.become_cpython(argv, background=background, keeps_log=keeps_log)
    if small and not background:
        little.become_micropython(argv, heap_kb or little.HEAP_KB)
    ready = _nothing
    if background:
        ready = daemon.detach(keeps_log=daemon.keeps_log(config, board))
    argv += ["--pid", str(os.getpid())]
    if runtime == "micropython":
        heap_kb = heap_kb or (little.HEAP_KB if small else boards.load(board).heap_kb)
        sys.exit(launcher.run_micropython(argv, heap_kb, ready, relay=background))
    sys.exit(launcher.run_here(argv, ready))


@main.command("budget")
@click.option(
    "-c",
    "file",
    type=click.Path(path_type=Path),
    help="With the limits of this configuration.",
)
@_board
def print_budget(file: Path | None, board: str) -> None:
    """Print how much RAM each table takes with the board's limits."""
    from .config import budget

    click.echo(f"{'table':<16}{'bytes':>8}  slots")
    click.echo(budget.text(board, file))


@main.command()
@click.option("--board", type=click.Choice(boards.names()))
@click.option("--mip", "portable", is_flag=True, help="For all boards, to be installed with mip.")
@click.option("--sources", is_flag=True, help="With --mip: readable, for boards with PSRAM.")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
def build(board: str | None, portable: bool, sources: bool, folder: Path) -> None:
    """Write the broker into FOLDER, packed and compiled for a board's processor."""
    if portable == bool(board):
        raise click.UsageError("give either --board or --mip")
    if sources and not portable:
        raise click.UsageError("--sources needs --mip")
    import shutil

    from .pack import mip, mpy

    if portable:
        count = mip.write(folder, sources=sources)
        click.echo(f"{folder}: {count} files; mpremote mip install {folder}/package.json")
        return
    facts = boards.load(board or "")
    arch = facts.mpy_arch
    if not arch:
        raise click.UsageError(f"{board} has no processor to compile for")
    made = mpy.build(arch)
    for name in mpy.for_board(made, facts.name):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(made / name, folder / name)
    size = sum(file.stat().st_size for file in folder.rglob("*.mpy"))
    click.echo(f"{folder}: {size:,} bytes for {board} ({arch}); copy its folders to :/lib")


@main.command("inspect")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--sqlite",
    "database",
    type=click.Path(path_type=Path),
    help="Write the tables to this new SQLite database instead.",
)
def inspect_journal(file: Path, database: Path | None) -> None:
    """Print a journal as tables: config, clients, subs, messages, retain."""
    from .journal import contents, tables

    journal = contents.read(file)
    if database:
        tables.write_sqlite(journal, database)
        return
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    for name, rows in tables.rows(journal).items():
        click.echo(f"{name} ({len(rows)})")
        table = Table(*tables.TABLES[name], box=box.SIMPLE_HEAD)
        for row in rows:
            table.add_row(*("" if cell is None else escape(shown(cell)) for cell in row))
        Console(width=None if sys.stdout.isatty() else 160).print(table)


def broker_argv(
    *, config: str | None, port: int | None, verbose: bool, host: str | None, board: str
) -> list[str]:
    """The arguments of `slotmq.app.main`, in the form that it parses."""
    argv: list[str] = []
    if config is not None:
        argv += ["-c", config]
    if port is not None:
        argv += ["-p", str(port)]
    if verbose:
        argv += ["-v"]
    if host is not None:
        argv += ["--host", host]
    return [*argv, "--board", board]


def _nothing() -> None:
    """In the foreground no process waits until the broker is ready."""


if __name__ == "__main__":
    main()
