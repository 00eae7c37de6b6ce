# sockets.py - TCP and the clock of the runtime that this is, with one contract.
# ruff: noqa: F401 - others import from here
from slotmq.platform.runtime import MICROPYTHON

if MICROPYTHON:
    from slotmq.platform.sockets_micropython import clock, half_close, open_listener
else:
    from slotmq.platform.sockets_cpython import clock, half_close, open_listener
