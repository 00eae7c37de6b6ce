# sockets.py - chooses TCP and the clock of this runtime, so that the rest of the broker has one
# import for both: clock (ticks_ms, ticks_diff), half_close(), open_listener().
# ruff: noqa: F401 - others import from here
from slotmq.platform.runtime import MICROPYTHON

if MICROPYTHON:
    from slotmq.platform.sockets_micropython import clock, half_close, open_listener
else:
    from slotmq.platform.sockets_cpython import clock, half_close, open_listener
