# properties.py - chooses, for this runtime, the fast path for properties and topic aliases of MQTT
# 5.0 and for retained messages to a new subscriber. Not loaded where the heap is small.
# ruff: noqa: F401 - others import from here
from slotmq.platform.runtime import MICROPYTHON

if MICROPYTHON:
    from slotmq.fast.properties_viper import Quick
    from slotmq.fast.storms_viper import put_retained
else:
    from slotmq.fast.properties_cpython import Quick
    from slotmq.fast.storms_cpython import put_retained
