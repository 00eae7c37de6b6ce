# dial.py - chooses how this runtime connects outwards: dial(), find(), host_name(), noise().
# ruff: noqa: F401 - others import from here
from slotmq.platform.runtime import MICROPYTHON

if MICROPYTHON:
    from slotmq.platform.dial_micropython import dial, find, host_name, noise
else:
    from slotmq.platform.dial_cpython import dial, find, host_name, noise
