"""Passes signals to the broker as orders: one byte each on its standard input.

MicroPython has no module `signal`. On CPython a signal handler could not wake the event loop,
since Python resumes a poll that a signal interrupts. A byte to read wakes both.
"""

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


def pipe() -> tuple[int, int]:
    """-> the descriptors to read orders from and to write them to.

    Neither blocks: if a turn registers streams, MicroPython's ipoll() may report one twice."""
    found = os.pipe()
    for line in found:
        os.set_blocking(line, False)
    return found


@contextmanager
def for_child() -> Iterator[tuple[int, ...]]:
    """Block the signals in this block's child process; yield a signalfd it can read them from.

    Yields (), and blocks nothing, on a system without signalfd (it is Linux's)."""
    import ctypes  # here, since a broker on CPython would keep it in its memory

    libc = ctypes.CDLL(None)
    if not hasattr(libc, "signalfd"):
        yield ()
        return
    numbers = ctypes.create_string_buffer(128)  # a sigset_t
    libc.sigemptyset(numbers)
    for number in BY_SIGNAL:
        libc.sigaddset(numbers, number)
    line = libc.signalfd(-1, numbers, os.O_CLOEXEC | os.O_NONBLOCK)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, BY_SIGNAL)
    try:
        yield (line,)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(line)


def ignore_signals() -> None:
    """Ignore the signals that do not ask the broker to stop, until pass_on_signals()."""
    for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)


def pass_on_signals(line: int) -> None:
    """Handle each of the signals by writing its order to the descriptor `line`."""

    def order(number: int, _frame: FrameType | None) -> None:
        with suppress(BrokenPipeError, BlockingIOError):  # it has ended, or the pipe is full
            os.write(line, BY_SIGNAL[signal.Signals(number)])

    for number in BY_SIGNAL:
        signal.signal(number, order)
