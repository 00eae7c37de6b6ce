"""Runs the broker: in this process on CPython, as a child process on MicroPython.

The child gets a session of its own, since a SIGINT from the terminal would raise
KeyboardInterrupt anywhere in it. It reads orders from a pipe whose other end only this process
holds. If this process is killed, the pipe closes and the broker stops.
"""

import io
import os
import select
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from . import orders

PRIVATE = 0o077  # umask of MicroPython: a build without ffi cannot set it in app/start.py

BOOT = Path(__file__).with_name("boot_micropython.py")
_LARGE_KB = 1024  # more than a board has
_STDIN, _STDERR = 0, 2
_NO_HEAP = 70  # exit status of BOOT: the code does not fit the heap


def run_here(argv: list[str], ready: Callable[[], None]) -> int:
    """Run the broker in this process until it stops; -> its exit status.

    `argv`: the arguments of slotmq.app.main; `ready` is called once the broker listens."""
    from slotmq import app

    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # as on MicroPython
    order_in, order_out = orders.pipe()
    os.dup2(order_in, _STDIN)
    os.close(order_in)
    orders.pass_on_signals(order_out)
    status: int = app.main([*argv, "--orders"], on_ready=lambda _broker: ready())
    return status


def boot(heap_kb: int) -> Path:
    """What MicroPython runs."""
    return BOOT if heap_kb < _LARGE_KB else BOOT.with_name("pages_micropython.py")


def run_micropython(
    argv: list[str], heap_kb: int, ready: Callable[[], None], *, relay: bool
) -> int:
    """Run the broker on 32-bit MicroPython until it stops; -> its exit status.

    As run_here(); for `relay` see supervise()."""
    from .. import micropython
    from ..pack import mpy

    command = micropython.command(32, heap_kb, boot(heap_kb), [*argv, "--orders"])
    imports = mpy.build_for(micropython.find(32))
    status = supervise(command, micropython.environment(imports), ready, relay=relay)
    if status != _NO_HEAP:
        return status
    print(f"slotmq: heap {heap_kb} KB: the broker's code does not fit", file=sys.stderr)
    return 1


def supervise(
    command: list[str], environment: dict[str, str], ready: Callable[[], None], *, relay: bool
) -> int:
    """Start a broker, pass signals on to it, and wait for its end; -> its exit status.

    It writes a byte to the descriptor $SLOTMQ_READY_FD once it listens; then `ready` is called.
    It reads the signals that are sent to itself from $SLOTMQ_SIGNALS_FD. It inherits stdout and
    stderr; with `relay` its output goes through this process, so that `ready` may redirect it.
    """
    import subprocess  # here, since a broker on CPython would keep it in its memory

    order_in, order_out = orders.pipe()
    ready_in, ready_out = os.pipe()
    output_in, output_out = os.pipe() if relay else (None, None)
    orders.pass_on_signals(order_out)
    with orders.for_child() as signals:
        child = subprocess.Popen(
            command,
            env={
                **environment,
                "SLOTMQ_READY_FD": str(ready_out),
                "SLOTMQ_SIGNALS_FD": "".join(map(str, signals)),
            },
            stdin=order_in,
            stdout=output_out,
            stderr=output_out,
            start_new_session=True,
            pass_fds=(ready_out, *signals),
            umask=PRIVATE,
        )
    for of_child in (order_in, ready_out, output_out):
        if of_child is not None:
            os.close(of_child)
    if output_in is None:
        _await(ready_in, ready)
    else:
        _relay(output_in, ready_in, ready)
    return _exit_status(child.wait())


def _await(ready_in: int, ready: Callable[[], None]) -> None:
    # Without a byte to read the broker has ended.
    if os.read(ready_in, 1):
        ready()


def _relay(output: int, ready_in: int, ready: Callable[[], None]) -> None:
    """Relay output until it ends. What was printed before the broker listened, goes first."""
    os.set_blocking(output, False)
    events = select.poll()
    events.register(output, select.POLLIN)
    events.register(ready_in, select.POLLIN)
    open_still = True
    while open_still:
        listens = ready_in in dict(events.poll())
        open_still = _relay_available(output)
        if listens:
            events.unregister(ready_in)
            _await(ready_in, ready)


def _relay_available(output: int) -> bool:
    """Relay what can be read now; -> False at the end of the output."""
    with suppress(BlockingIOError):
        while piece := os.read(output, 4096):
            os.write(_STDERR, piece)
        return False
    return True


def _exit_status(returned: int) -> int:
    # As in a shell: 128 + the signal, if a signal ended the child
    return returned if returned >= 0 else 128 - returned
