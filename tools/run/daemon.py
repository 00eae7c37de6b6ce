"""`slotmq -d`: the broker goes on in the background once it listens.

The command that was typed ends only then, with status 0, or with the broker's
own status if the start was refused, and its messages have been seen.
"""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

_LOST = (
    "slotmq: the log to stderr and stdout ends here, in the background;"
    " `log_dest file PATH` keeps one"
)


def keeps_log(config: str | None, board: str) -> bool:
    """Does anything read what is logged, or is nothing? A bad file is the start's to tell."""
    from slotmq.config import mosquitto_conf, settings

    found = settings.Settings()
    if config is not None:
        with suppress(settings.ConfError):
            limits = import_module(f"slotmq_boards.{board}.limits").LIMITS
            found, _, _ = mosquitto_conf.load(config, limits)
    return not found.log_dest or any(where.startswith("file ") for where in found.log_dest)


def detach(*, keeps_log: bool) -> Callable[[], None]:
    """Go on in a process and a session of its own; call what is returned when ready."""
    told, tell = os.pipe()
    if child := os.fork():
        os.close(tell)
        _end_when_ready(told, child)
    os.close(told)
    os.setsid()

    def ready() -> None:
        if not keeps_log:
            print(_LOST, file=sys.stderr, flush=True)
        _leave_terminal()
        with suppress(BrokenPipeError):  # nobody waits any more
            os.write(tell, b"\n")
        os.close(tell)

    return ready


def _end_when_ready(told: int, child: int) -> NoReturn:
    if os.read(told, 1):
        os._exit(0)
    _, status = os.waitpid(child, 0)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def _leave_terminal() -> None:
    """Output goes nowhere from now on; input is the line of orders, and stays."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.close(nowhere)
