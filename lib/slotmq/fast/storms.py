# storms.py - chooses the loop of this runtime that puts retained messages into the buffer of a new
# subscriber. Loaded where the heap is large.
# ruff: noqa: F401 - others import from here
from slotmq.platform.runtime import MICROPYTHON

if MICROPYTHON:
    from slotmq.fast.storms_viper import put_retained
else:
    from slotmq.fast.storms_cpython import put_retained
