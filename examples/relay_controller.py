# relay_controller.py - clients switch relays by MQTT. To be safe, all relays go off when a client
# that may switch them disconnects.
#
#   relay/1/set    on or off             relay/1    its state, retained
#
# Hooks decide who may publish, and report disconnects. Broker.run() is the main loop.
#
# On a computer `python relay_controller.py` prints what the pins would do; on a board, main.py
# calls main(). Every client in the network may connect.
from slotmq import Broker, Limits


class Relays:
    """The pins, and the hooks of the broker."""

    def __init__(self, broker, pins):
        self.broker = broker
        self.pins = pins
        for name in pins:
            self.switch(name, False)

    def switch(self, name, on):
        self.pins[name](on)
        self.broker.publish("relay/" + name, b"on" if on else b"off", 1, retain=True)

    def on_message(self, topic, payload, _qos, _retained):
        name = topic.split("/")[1]
        if name in self.pins:
            self.switch(name, payload == b"on")

    # Hooks

    def may_publish(self, client_id, topic):
        """Only clients named panel-... may switch."""
        return not topic.startswith(b"relay/") or (
            topic.endswith(b"/set") and client_id.startswith(b"panel-")
        )

    def on_disconnect(self, client_id, reason):
        if client_id.startswith(b"panel-"):
            for name in self.pins:
                self.switch(name, False)


def main(port=1883, pins=None, started=None):
    """Run until the broker is stopped."""
    if pins is None:  # on a board
        from machine import Pin

        outputs = {"1": Pin(2, Pin.OUT), "2": Pin(3, Pin.OUT)}
        pins = {name: outputs[name].value for name in outputs}
    broker = Broker(Limits(connections=5))
    broker.listen("0.0.0.0", port)
    relays = Relays(broker, pins)
    broker.hooks = relays
    broker.subscribe("relay/+/set", relays.on_message, 1)
    if started:
        started(broker)
    broker.run()


if __name__ == "__main__":
    print("relay_controller: port 1883, relays 1 and 2; Ctrl-C ends it")
    try:
        main(pins={"1": lambda on: print("relay 1:", on), "2": lambda on: print("relay 2:", on)})
    except KeyboardInterrupt:
        pass
