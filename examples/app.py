# app.py - an application beside the broker on a board: slotmq's own firmware brings up the
# network, the watchdog and the broker, and calls start(broker) before the first turn.
# `slotmq deploy --app app.py` puts it there; docs/embed.md has its contract.
#
#   room/temperature    published here every ten seconds, retained
#   relay/1/set         on or off, by whoever is called panel-...
import time

from machine import ADC, Pin

_EVERY_MS = 10000


class Room:
    """A sensor and a relay."""

    def __init__(self, broker):
        self.broker = broker
        self.sensor = ADC(4)  # an RP2040's own
        self.relay = Pin(2, Pin.OUT)
        self.last = time.ticks_ms() - _EVERY_MS

    def may_publish(self, client_id, topic):
        return not topic.startswith(b"relay/") or client_id.startswith(b"panel-")

    def switch(self, _topic, payload, _qos, _retained):
        self.relay.value(payload == b"on")

    def step(self):
        """Between two turns: what takes long makes clients wait, and the watchdog bite."""
        now = time.ticks_ms()
        if time.ticks_diff(now, self.last) >= _EVERY_MS:
            self.last = now
            celsius = 27 - (self.sensor.read_u16() * 3.3 / 65535 - 0.706) / 0.001721
            self.broker.publish("room/temperature", "%.1f" % celsius, retain=True)


def start(broker):
    """Called once; what it returns is called between two turns."""
    room = Room(broker)
    broker.hooks = room
    broker.subscribe("relay/1/set", room.switch, 1)  # takes one of `limit connections`
    return room.step
