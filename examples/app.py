# app.py - an application beside the broker on a board. slotmq's firmware starts the network, the
# watchdog and the broker, and calls start(broker) before the first turn.
# `slotmq deploy --app app.py` installs it; docs/embed.md describes its interface. On a computer
# `python app.py` prints what the relay would do, until Ctrl-C.
#
#   room/temperature    published every ten seconds, retained
#   relay/1/set         on or off; only clients named panel-... may publish it
import time

try:
    from machine import ADC, Pin
except ImportError:
    from computer import ADC, Pin

_EVERY_MS = 10000


class Room:
    """A sensor and a relay."""

    def __init__(self, broker):
        self.broker = broker
        self.sensor = ADC(4)  # the RP2040's own sensor
        self.relay = Pin(2, Pin.OUT)
        self.last = time.ticks_ms() - _EVERY_MS

    def may_publish(self, client_id, topic):
        return not topic.startswith(b"relay/") or client_id.startswith(b"panel-")

    def switch(self, _topic, payload, _qos, _retained):
        self.relay.value(payload == b"on")

    def step(self):
        """Called between two turns. If it takes long, clients wait and the watchdog resets."""
        now = time.ticks_ms()
        if time.ticks_diff(now, self.last) >= _EVERY_MS:
            self.last = now
            celsius = 27 - (self.sensor.read_u16() * 3.3 / 65535 - 0.706) / 0.001721
            self.broker.publish("room/temperature", "%.1f" % celsius, retain=True)


def start(broker):
    """Called once; returns a function that is called between turns."""
    room = Room(broker)
    broker.hooks = room
    broker.subscribe("relay/1/set", room.switch, 1)  # uses one of `limit connections`
    return room.step


if __name__ == "__main__":
    from computer import run

    run("app", start)
