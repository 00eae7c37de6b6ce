# slotmq: an MQTT broker that fits in fixed slots.
# ruff: noqa: I001 - fast first: all others import it, and MicroPython's stack is too small for
# it at the end of a chain of them
from slotmq import fast  # noqa: F401
from slotmq.platform.runtime import MICROPYTHON

from slotmq.config.limits import Limits
from slotmq.config.settings import Settings

if MICROPYTHON:
    from slotmq.broker import Broker
else:
    from slotmq.broker_cpython import Broker

__version__ = "0.1.0"
__all__ = ("Broker", "Limits", "Settings")
