# record.py - chooses the inner loops of the recorder for this runtime. Apart from
# fast/__init__.py, so that a broker that does not record does not load them.
# ruff: noqa: F401 - others import from here
from slotmq.platform.runtime import MICROPYTHON

if MICROPYTHON:
    from slotmq.fast.record_viper import add, add_all, make
else:
    from slotmq.fast.record_cpython import add, add_all, make
