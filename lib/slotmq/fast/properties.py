# properties.py - chooses the fast path for properties and topic aliases of MQTT 5.0 for this
# runtime. Loaded by v5/quick_properties.py, so not where the heap is small.
# ruff: noqa: F401 - others import from here
from slotmq.platform.runtime import MICROPYTHON

if MICROPYTHON:
    from slotmq.fast.properties_viper import Quick
else:
    from slotmq.fast.properties_cpython import Quick
