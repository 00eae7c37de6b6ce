"""What MicroPython runs on the host: the broker, with the arguments that it is given.

tools/launcher.py starts it and names a descriptor in $SLOTMQ_READY_FD, which is
told when the broker listens. Status 70 tells it that the code does not fit the heap,
of which nothing is left for a line about it.
"""

import os
import sys

try:
    import slotmq.start  # noqa: F401 - app borrows it
    from slotmq import app
except MemoryError:
    sys.exit(70)


def announce(_broker):
    """Tell the launcher, if there is one, that the broker listens."""
    ready_fd = os.getenv("SLOTMQ_READY_FD")
    if ready_fd:
        with open(int(ready_fd), "wb") as line:
            line.write(b"\n")


sys.exit(app.main(sys.argv[1:], on_ready=announce))
