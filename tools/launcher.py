"""Runs the broker: in this process on CPython, as a child process on MicroPython.

MicroPython gets a session of its own, since a SIGINT from the terminal would
raise KeyboardInterrupt anywhere in it. It takes its orders from a pipe whose
other end only this process has: if this process is killed, however hard, the
pipe ends, and the broker stops by itself.
"""

import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from . import micropython, mpy, orders

_BOOT = Path(__file__).with_name("boot_micropython.py")
_STDIN, _STDERR = 0, 2


def run_here(argv: list[str], ready: Callable[[], None]) -> int:
    """Run the broker on this CPython until it stops; its exit status."""
    from slotmq import app

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
    command = micropython.command(32, heap_kb, _BOOT, [*argv, "--orders"])
    imports = mpy.build_for(micropython.find(32))
    return supervise(command, micropython.environment(imports), ready, relay=relay)


def supervise(
    command: list[str], environment: dict[str, str], ready: Callable[[], None], *, relay: bool
) -> int:
    """Start a broker, pass signals on to it, wait for its end; its exit status.

    It writes a byte to the descriptor `$SLOTMQ_READY_FD` when it listens. Its
    output is this process's, and with `relay` it follows even where that is
    redirected later.
    """
    order_in, order_out = os.pipe()
    told, tell = os.pipe()
    orders.pass_on_signals(order_out)
    with _relayed_output() if relay else nullcontext() as output:
        child = subprocess.Popen(
            command,
            env={**environment, "SLOTMQ_READY_FD": str(tell)},
            stdin=order_in,
            stdout=output,
            stderr=output,
            start_new_session=True,
            pass_fds=(tell,),
        )
        os.close(order_in)
        os.close(tell)
        if os.read(told, 1):  # else it ended before it listened
            ready()
        return _exit_status(child.wait())


@contextmanager
def _relayed_output() -> Iterator[int]:
    """A descriptor whose output a thread writes to what is standard error then."""
    output_in, output_out = os.pipe()

    def relay() -> None:
        while piece := os.read(output_in, 4096):
            os.write(_STDERR, piece)

    thread = threading.Thread(target=relay)
    thread.start()
    try:
        yield output_out
    finally:
        os.close(output_out)
        thread.join()


def _exit_status(returned: int) -> int:
    """As a shell has it: 128 + the signal, if it was one that ended the child."""
    return returned if returned >= 0 else 128 - returned
