# frames.py - chooses the loop of this runtime that takes WebSocket frames off received bytes.
# Loaded for the first listener that speaks WebSocket.
# ruff: noqa: F401 - others import from here
from slotmq.platform.runtime import MICROPYTHON

if MICROPYTHON:
    from slotmq.fast.frames_viper import unwrap
else:
    from slotmq.fast.frames_cpython import unwrap
