# sockets.py - chooses TCP and the clock of this runtime, so that the rest of the broker has one
# import for both: half_close(). control.py opens listeners.
# ruff: noqa: F401 - others import from here
from slotmq.platform.runtime import MICROPYTHON

if MICROPYTHON:
    from slotmq.platform.sockets_micropython import half_close
else:
    from slotmq.platform.sockets_cpython import half_close
