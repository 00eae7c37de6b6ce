# row_kinds.py - for each kind of record a scene that writes one: the steps before, and the steps
# in which the power is cut.
import packets5
from fakes import Client, Stream, World
from packets import DISCONNECT, PUBACK, PUBREC, ack, connect, publish, subscribe

from slotmq import Broker, Limits, Settings
from slotmq.journal.restore import restore

# ruff: noqa: RUF005 - MicroPython has no stars in a list
LIMITS = {"connections": 4, "sessions": 6, "subscriptions": 8, "messages": 16, "deliveries": 16}
TURNS = 3  # for each step
UNSUBSCRIBE = b"\xa2\x05\0\x02\0\1t"
DELAY = b"\x18\0\0\x01\0"  # of a will
OPTIONS = b"\x0b\x05"  # subscription identifier


class Stage:
    """A broker with a medium, and the clients of a scene."""

    def __init__(self, medium):
        self.world = World(Broker(Limits(**LIMITS), Settings(sys_interval=0)))
        self.broker = self.world.broker
        self.clients = {}
        restore(self.broker, medium, lambda text: None)

    def connect(self, name, sent):
        client = self.clients[name] = Client(Stream())
        self.world.listener.waiting.append(client.stream)
        client.send(sent)

    def send(self, name, sent):
        self.clients[name].send(sent)

    def received(self):
        """The number of bytes that clients got."""
        return sum(len(client.stream.received) for client in self.clients.values())


# Steps: (client, its first bytes), (client, None, further bytes), or "compact".
def reader(qos):
    return [("reader", connect("reader", clean=False) + subscribe(1, "t", qos))]


WRITER = [("writer", connect("writer", clean=False))]
GONE = [("reader", None, DISCONNECT)]
FIVE = [("five", packets5.connect("five", clean=False, expiry=99))]
OFFLINE = reader(1) + GONE + WRITER
SENT = reader(2) + WRITER + [("writer", None, publish("t", b"two", 2, 7))]

# name: (the steps before, those in which the power is cut, the kind of record)
SCENES = {
    "HEAD": (OFFLINE, ["compact"], 1),
    "SESSION": ([], WRITER, 2),
    "SESSION, its will": ([], [("w", connect("w", clean=False, will=("will", "x", 1)))], 2),
    "SESSION of 5.0": (
        [],
        [("v", packets5.connect("v", will=("will", "x", 1, DELAY), clean=False, expiry=9))],
        2,
    ),
    "SESSION_GONE": (OFFLINE, [("reader", connect("reader"))], 3),
    "SUBSCRIPTION": (WRITER, [("writer", None, subscribe(9, "a/+/c", 2))], 4),
    "SUBSCRIPTION, shared": (
        FIVE,
        [("five", None, packets5.subscribe(3, "$share/g/t", 1, OPTIONS))],
        4,
    ),
    "SUBSCRIPTION_GONE": (reader(1), [("reader", None, UNSUBSCRIBE)], 5),
    "MESSAGE": (OFFLINE, [("writer", None, publish("t", b"m" * 70, 1, 8))], 6),
    "DELIVERY": (OFFLINE, [("writer", None, publish("t", b"", 1, 8) * 2)], 7),
    "DELIVERY_RELEASED": (SENT, [("reader", None, ack(PUBREC, 1))], 8),
    "DELIVERY_GONE": (
        reader(1) + WRITER + [("writer", None, publish("t", b"one", 1, 8))],
        [("reader", None, ack(PUBACK, 1) + subscribe(4, "u", 0))],
        9,
    ),
    "RECEIVED": (WRITER, [("writer", None, publish("nobody", b"", 2, 5))], 10),
    "RETAINED": (WRITER, [("writer", None, publish("r", b"kept", 1, 5, retain=True))], 11),
    "RETAINED_GONE": (
        WRITER + [("writer", None, publish("r", b"kept", 1, 5, retain=True))],
        [("writer", None, publish("r", b"", 1, 6, retain=True))],
        12,
    ),
    "COMMIT": (WRITER, [("writer", None, subscribe(9, "c", 1))], 13),
}


def play(stage, steps, note=lambda: None):
    """The steps of a scene; note() after each turn."""
    for step in steps:
        if step == "compact":
            stage.broker.compact()
        elif len(step) == 2:
            stage.connect(*step)
        else:
            stage.send(step[0], step[2])
        for _ in range(TURNS):
            stage.world.turn()
            note()
