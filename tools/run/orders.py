"""The orders a running broker takes on its standard input, one byte each.

Signals become orders, for both runtimes alike. MicroPython has no `signal`
module, and on CPython a handler could not wake the loop: Python resumes a poll
that a signal interrupted. A byte to read wakes both.
"""

import ctypes
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

STOP = b"s"
RELOAD = b"r"
COMPACT = b"c"
DUMP_TREE = b"t"

BY_SIGNAL = {
    signal.SIGINT: STOP,
    signal.SIGTERM: STOP,
    signal.SIGHUP: RELOAD,
    signal.SIGUSR1: COMPACT,
    signal.SIGUSR2: DUMP_TREE,
}


@contextmanager
def for_child() -> Iterator[tuple[int, ...]]:
    """Who is started meanwhile has the signals blocked, and reads its own from this descriptor.

    () where the system has none such (signalfd: Linux), and nothing is blocked."""
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "signalfd"):
        yield ()
        return
    numbers = ctypes.create_string_buffer(128)  # a sigset_t
    libc.sigemptyset(numbers)
    for number in BY_SIGNAL:
        libc.sigaddset(numbers, number)
    line = libc.signalfd(-1, numbers, os.O_CLOEXEC)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, BY_SIGNAL)
    try:
        yield (line,)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(line)


def ignore_signals() -> None:
    """Until pass_on_signals() end by none of those that do not ask for an end."""
    for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)


def pass_on_signals(line: int) -> None:
    """From now on, answer each of the signals with its order on the descriptor `line`."""
    os.set_blocking(line, False)

    def order(number: int, _frame: FrameType | None) -> None:
        with suppress(BrokenPipeError, BlockingIOError):  # it has ended, or has orders enough
            os.write(line, BY_SIGNAL[signal.Signals(number)])

    for number in BY_SIGNAL:
        signal.signal(number, order)
