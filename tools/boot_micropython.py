"""What MicroPython runs on the host, started by tools/launcher.py."""

import os
import sys

from slotmq import app


def announce(_broker):
    """Tell the launcher that the broker listens."""
    with open(int(os.getenv("SLOTMQ_READY_FD")), "wb") as line:
        line.write(b"\n")


sys.exit(app.main(sys.argv[1:], on_ready=announce))
