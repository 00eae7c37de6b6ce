"""Builds what the emulated board needs, and runs one if asked to.

python -m slotmq_dev.emulator [--run FOLDER]
"""

import fcntl
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import click

from slotmq_tools.errors import ToolError

from . import image, toolchain
from .board import Board, command

_PORT = 1883


@click.command()
@click.option(
    "--run",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Run a board until Ctrl-C; its flash is stored in FOLDER.",
)
@click.option("--forward", default=_PORT, show_default=True, help="Forward this port.")
def main(folder: Path | None, forward: int) -> None:
    """Build what the emulated board needs, unless it is in the cache; optionally run one."""
    try:
        made = image.build()
        toolchain.slirp()
        words, _ = command(None)
        if folder is None:
            click.echo(f"image in {made.folder}, started by {words[0]}")
        else:
            _run(folder, forward)
    except ToolError as error:
        print(f"slotmq: {error}", file=sys.stderr)
        sys.exit(1)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    # Two boards in one folder would overwrite each other's flash.
    with (folder / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ToolError(f"{folder}: an emulated board runs there already") from None
        yield


def _run(folder: Path, forward: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    # A shell that starts it in the background has SIGINT ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with _alone(folder), Board(folder, [forward]) as board:
        host, port = board.reach(forward)
        click.echo(
            f"an emulated RP2040 runs: its REPL is {board.device}, its port {forward} is"
            f" {host}:{port}\n"
            f"slotmq deploy --board RPI_PICO_W --ppp --port {board.device} --reach {host}:{port}"
            " --anonymous"
        )
        with suppress(KeyboardInterrupt):
            signal.pause()


if __name__ == "__main__":
    main()
