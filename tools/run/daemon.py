"""`slotmq -d`: the broker runs in the background once it listens.

The command in the foreground ends only then, with status 0. If the start is refused, it ends
with the broker's status, after its messages were printed.
"""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

_LOST = (
    "slotmq: the broker goes to the background and logs no more to stderr or stdout;"
    " `log_dest file PATH` would log to a file"
)


def keeps_log(config: str | None, board: str) -> bool:
    """Whether the configuration logs to a file, or not at all.

    Errors in the file are ignored here: the start reports them."""
    from slotmq.config import mosquitto_conf, settings

    found = settings.Settings()
    if config is not None:
        with suppress(settings.ConfError):
            limits = import_module(f"slotmq_boards.{board}.limits").LIMITS
            found, *_ = mosquitto_conf.load(config, limits)
    return not found.log_dest or any(where.startswith("file ") for where in found.log_dest)


def detach(*, keeps_log: bool) -> Callable[[], None]:
    """Continue in a child process with a session of its own; -> a function to call when ready.

    That function lets the parent end and closes stdout and stderr."""
    ready_in, ready_out = os.pipe()
    if child := os.fork():
        os.close(ready_out)
        _end_when_ready(ready_in, child)
    os.close(ready_in)
    os.setsid()

    def ready() -> None:
        if not keeps_log:
            print(_LOST, file=sys.stderr, flush=True)
        _leave_terminal()
        with suppress(BrokenPipeError):  # the parent was killed
            os.write(ready_out, b"\n")
        os.close(ready_out)

    return ready


def _end_when_ready(ready_in: int, child: int) -> NoReturn:
    if os.read(ready_in, 1):
        os._exit(0)
    _, status = os.waitpid(child, 0)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def _leave_terminal() -> None:
    # Standard input stays: it is the pipe of orders.
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.close(nowhere)
