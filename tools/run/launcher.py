"""Runs the broker: in this process on CPython, as a child process on MicroPython.

MicroPython gets a session of its own, since a SIGINT from the terminal would
raise KeyboardInterrupt anywhere in it. It takes its orders from a pipe whose
other end only this process has: if this process is killed, however hard, the
pipe ends, and the broker stops by itself.
"""

import io
import os
import select
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from .. import micropython
from ..pack import mpy
from . import orders

BOOT = Path(__file__).with_name("boot_micropython.py")
_STDIN, _STDERR = 0, 2
_NO_ROOM = 70  # BOOT's status where the code does not fit the heap


def run_here(argv: list[str], ready: Callable[[], None]) -> int:
    """Run the broker on this CPython until it stops; its exit status."""
    from slotmq import app

    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # as on MicroPython, no line waits
    order_in, order_out = os.pipe()
    os.dup2(order_in, _STDIN)
    os.close(order_in)
    orders.pass_on_signals(order_out)
    status: int = app.main([*argv, "--orders"], on_ready=lambda _broker: ready())
    return status


def run_micropython(
    argv: list[str], heap_kb: int, ready: Callable[[], None], *, relay: bool
) -> int:
    """Run the broker on 32-bit MicroPython until it stops; its exit status."""
    command = micropython.command(32, heap_kb, BOOT, [*argv, "--orders"])
    imports = mpy.build_for(micropython.find(32))
    status = supervise(command, micropython.environment(imports), ready, relay=relay)
    if status != _NO_ROOM:
        return status
    print(f"slotmq: heap {heap_kb} KB: the broker's code does not fit", file=sys.stderr)
    return 1


def supervise(
    command: list[str], environment: dict[str, str], ready: Callable[[], None], *, relay: bool
) -> int:
    """Start a broker, pass signals on to it, wait for its end; its exit status.

    It writes a byte to the descriptor `$SLOTMQ_READY_FD` when it listens, and reads the signals
    that are sent to itself from `$SLOTMQ_SIGNALS_FD`. Its
    output is this process's, and with `relay` it follows even where `ready`
    redirects that.
    """
    order_in, order_out = os.pipe()
    told, tell = os.pipe()
    output_in, output_out = os.pipe() if relay else (None, None)
    orders.pass_on_signals(order_out)
    with orders.for_child() as signals:
        child = subprocess.Popen(
            command,
            env={
                **environment,
                "SLOTMQ_READY_FD": str(tell),
                "SLOTMQ_SIGNALS_FD": "".join(map(str, signals)),
            },
            stdin=order_in,
            stdout=output_out,
            stderr=output_out,
            start_new_session=True,
            pass_fds=(tell, *signals),
        )
    for childs in (order_in, tell, output_out):
        if childs is not None:
            os.close(childs)
    if output_in is None:
        _await(told, ready)
    else:
        _relay(output_in, told, ready)
    return _exit_status(child.wait())


def _await(told: int, ready: Callable[[], None]) -> None:
    """Call `ready` when the broker tells; nothing to read means that it has ended."""
    if os.read(told, 1):
        ready()


def _relay(output: int, told: int, ready: Callable[[], None]) -> None:
    """Relay output until it ends, and all that came before the broker told before `ready`."""
    os.set_blocking(output, False)
    events = select.poll()
    events.register(output, select.POLLIN)
    events.register(told, select.POLLIN)
    open_still = True
    while open_still:
        has_told = told in dict(events.poll())
        open_still = _relay_what_is_there(output)
        if has_told:
            events.unregister(told)
            _await(told, ready)


def _relay_what_is_there(output: int) -> bool:
    """Is there more to come?"""
    with suppress(BlockingIOError):
        while piece := os.read(output, 4096):
            os.write(_STDERR, piece)
        return False
    return True


def _exit_status(returned: int) -> int:
    """As a shell has it: 128 + the signal, if it was one that ended the child."""
    return returned if returned >= 0 else 128 - returned
