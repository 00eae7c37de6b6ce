# relay_controller.py - relays that clients switch by MQTT, and that fail safe: a relay goes
# off when the client that switched it on is lost.
#
#   relay/1/set    on or off             relay/1    what it is, retained
#
# Hooks say who may do what, and tell who has gone. The program is the loop's: run() turns it.
from slotmq import Broker, Limits


class Relays:
    """The pins, and whose doing it is that one is on."""

    def __init__(self, broker, pins):
        self.broker = broker
        self.pins = pins
        for name in pins:
            self.switch(name, False)

    def switch(self, name, on):
        self.pins[name](on)
        self.broker.publish("relay/" + name, b"on" if on else b"off", 1, retain=True)

    def told(self, topic, payload, _qos, _retained):
        name = topic.split("/")[1]
        if name in self.pins:
            self.switch(name, payload == b"on")

    # Hooks

    def may_publish(self, client_id, topic):
        """Only who is called panel-... may switch."""
        return not topic.startswith(b"relay/") or (
            topic.endswith(b"/set") and client_id.startswith(b"panel-")
        )

    def on_disconnect(self, client_id, reason):
        if client_id.startswith(b"panel-"):
            for name in self.pins:
                self.switch(name, False)


def main(port=1883, pins=None, started=None):
    """Serve until the broker is stopped."""
    if pins is None:  # on a board
        from machine import Pin

        outputs = {"1": Pin(2, Pin.OUT), "2": Pin(3, Pin.OUT)}
        pins = {name: outputs[name].value for name in outputs}
    broker = Broker(Limits(connections=5))
    broker.listen("0.0.0.0", port)
    relays = Relays(broker, pins)
    broker.hooks = relays
    broker.subscribe("relay/+/set", relays.told, 1)
    if started:
        started(broker)
    broker.run()
