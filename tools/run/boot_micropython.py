"""Runs the broker on MicroPython on the host, with the arguments it is given.

tools/run/launcher.py starts it. It passes two descriptors: to $SLOTMQ_READY_FD a line is written
once the broker listens, and from $SLOTMQ_SIGNALS_FD the signals sent to this process are read.
Exit status 70: the code does not fit the heap, and no heap is left to print that.
"""

import os
import sys

try:
    from slotmq import app

    try:  # app loads this on demand; packed it has another name
        __import__("slotmq.start")
    except ImportError:
        __import__("slotmq.app.start")
except MemoryError:
    sys.exit(70)


# Linux's signal numbers; the same as BY_SIGNAL in tools/run/orders.py
_BY_SIGNAL = {1: "reload", 2: "stop", 10: "compact", 12: "dump_tree", 15: "stop"}


def announce(broker):
    """Start to handle signals, and report to the launcher, if any, that the broker listens."""
    signals_fd = os.getenv("SLOTMQ_SIGNALS_FD")
    if signals_fd:
        signals = open(int(signals_fd), "rb")  # noqa: SIM115 - stays open
        broker.loop.watch(signals, lambda _: obey(broker, signals.read(128)))
    ready_fd = os.getenv("SLOTMQ_READY_FD")
    if ready_fd:
        with open(int(ready_fd), "wb") as line:
            line.write(b"\n")


def obey(broker, line):
    """Handle a signal that was sent to this process instead of to the launcher. line: of the
    signalfd; None: there is none."""
    try:
        if line:
            getattr(broker, _BY_SIGNAL[line[0]])()
    except (MemoryError, OSError) as error:
        print("slotmq: signal not obeyed:", error, file=sys.stderr)


sys.exit(app.main(sys.argv[1:], on_ready=announce))
