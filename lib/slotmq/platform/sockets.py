# sockets.py - TCP and the clock of this runtime, with one contract for both.
# ruff: noqa: F401 - others import from here
from slotmq.platform.runtime import MICROPYTHON

if MICROPYTHON:
    from slotmq.platform.sockets_micropython import clock, half_close, open_listener
else:
    from slotmq.platform.sockets_cpython import clock, half_close, open_listener
