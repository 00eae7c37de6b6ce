"""`slotmq run --small`: the process of the command line becomes the broker's alone.

It starts itself anew with as little as the broker needs: on CPython without the command line's
modules, on MicroPython without Python beside it. The process id stays.
"""

import os
import sys
from typing import NoReturn

from . import daemon, launcher, orders

BOARD = "SMALL"  # boards/SMALL/limits.py
HEAP_KB = 6144
_START = "from slotmq_tools.run import small; small.main()"
_FOREGROUND, _BACKGROUND, _WITH_LOG = "foreground", "background", "with-log"


def become_cpython(argv: list[str], *, background: bool, keeps_log: bool) -> NoReturn:
    """Go on as a Python that runs main(). argv: the arguments of slotmq.app.main."""
    way = _FOREGROUND if not background else _WITH_LOG if keeps_log else _BACKGROUND
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-c", _START, way, *argv])


def main() -> NoReturn:
    """Run the broker until it stops, with the arguments of become_cpython()."""
    orders.ignore_signals()
    way, *argv = sys.argv[1:]
    ready = _nothing
    if way != _FOREGROUND:
        ready = daemon.detach(keeps_log=way == _WITH_LOG)
    sys.exit(launcher.run_here([*argv, "--pid", str(os.getpid())], ready))


def become_micropython(argv: list[str], heap_kb: int) -> None:
    """Go on as a MicroPython that runs the broker, and reads the signals of this process itself.

    Returns only on a system without signalfd (it is Linux's)."""
    from .. import micropython
    from ..pack import mpy

    argv = [*argv, "--pid", str(os.getpid()), "--orders"]
    found = micropython.find(32)
    command = micropython.command(32, heap_kb, launcher.boot(heap_kb), argv)
    environment = micropython.environment(mpy.build_for(found))
    with orders.for_child() as signals:
        if not signals:
            return
        order_in, order_out = orders.pipe()
        os.dup2(order_in, 0)
        for line in (order_out, *signals):
            os.set_inheritable(line, True)
        environment["SLOTMQ_SIGNALS_FD"] = "".join(map(str, signals))
        sys.stdout.flush()
        os.umask(launcher.PRIVATE)
        os.execvpe(command[0], command, environment)


def _nothing() -> None:
    """In the foreground no process waits until the broker is ready."""
