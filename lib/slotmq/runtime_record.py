# runtime_record.py - runtime.py's part for the recorder, loaded only with it.
# ruff: noqa: F401 - others import from here
from slotmq.runtime import MICROPYTHON

if MICROPYTHON:
    from slotmq.hot_record import add, find, make, tap
else:
    from slotmq.hot_record_cpython import add, find, make, tap
