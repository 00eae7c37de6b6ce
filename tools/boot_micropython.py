"""What MicroPython runs on the host: the broker, with the arguments that it is given.

tools/launcher.py starts it and names a descriptor in $SLOTMQ_READY_FD, which is
told when the broker listens.
"""

import gc
import os
import sys


def load():
    """The program, and the first of what it borrows."""
    from slotmq import app, start  # noqa: F401 - which app forgets when it has started

    return app


def refuse():
    """One line about a heap that is too small for the code alone, and status 1."""
    sys.modules.clear()  # what was loaded so far makes room for the line
    gc.collect()
    size = gc.mem_alloc() + gc.mem_free()
    kb = (size * 131 // 128 + 512) // 1024  # with the collector's 3 bits for each 16 bytes
    print(f"slotmq: heap {kb} KB: the broker's code does not fit", file=sys.stderr)
    sys.exit(1)


def announce(_broker):
    """Tell the launcher, if there is one, that the broker listens."""
    ready_fd = os.getenv("SLOTMQ_READY_FD")
    if ready_fd:
        with open(int(ready_fd), "wb") as line:
            line.write(b"\n")


try:
    app = load()
except MemoryError:
    refuse()
sys.exit(app.main(sys.argv[1:], on_ready=announce))
