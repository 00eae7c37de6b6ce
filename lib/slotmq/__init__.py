# slotmq: an MQTT broker that fits in fixed slots.
from slotmq.broker import Broker
from slotmq.limits import Limits
from slotmq.settings import Settings

__version__ = "0.1.0"
__all__ = ("Broker", "Limits", "Settings")
