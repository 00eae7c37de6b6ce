"""What MicroPython runs on the host: the broker, with the arguments that it is given.

tools/run/launcher.py starts it and names a descriptor in $SLOTMQ_READY_FD, which is
told when the broker listens, and one in $SLOTMQ_SIGNALS_FD, where the signals come that are
sent to this process. Status 70 tells it that the code does not fit the heap, of which
nothing is left for a line about it.
"""

import os
import sys

try:
    from slotmq import app

    try:  # what it borrows, as it is called in a packed program, or as it was written
        __import__("slotmq.start")
    except ImportError:
        __import__("slotmq.app.start")
except MemoryError:
    sys.exit(70)


# The numbers are Linux'; tools/run/orders.py has the same orders.
_BY_SIGNAL = {1: "reload", 2: "stop", 10: "compact", 12: "dump_tree", 15: "stop"}


def announce(broker):
    """Obey signals from now on, and tell the launcher, if there is one, that it listens."""
    signals_fd = os.getenv("SLOTMQ_SIGNALS_FD")
    if signals_fd:
        signals = open(int(signals_fd), "rb")  # noqa: SIM115 - until the end
        broker.loop.watch(signals, lambda _: obey(broker, signals.read(128)[0]))
    ready_fd = os.getenv("SLOTMQ_READY_FD")
    if ready_fd:
        with open(int(ready_fd), "wb") as line:
            line.write(b"\n")


def obey(broker, number):
    """A signal that somebody has sent to this process, and not to the launcher."""
    try:
        getattr(broker, _BY_SIGNAL[number])()
    except (MemoryError, OSError) as error:
        print("slotmq: not done:", error, file=sys.stderr)


sys.exit(app.main(sys.argv[1:], on_ready=announce))
