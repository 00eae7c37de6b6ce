# row_kinds.py - for each kind of record a scene that writes one: what is there before,
# and the steps that change it. And what a broker remembers, as a value to compare.
import packets5
from fakes import Client, Stream, World
from packets import DISCONNECT, PUBACK, PUBREC, ack, connect, publish, subscribe

from slotmq import Broker, Limits, Settings
from slotmq.journal.restore import restore

# ruff: noqa: RUF005 - MicroPython has no stars in a list
NONE = 0xFFFF
LIMITS = {"connections": 4, "sessions": 6, "subscriptions": 8, "messages": 16, "deliveries": 16}
TURNS = 3  # for each step
HEAD, COMMIT = 1, 13
UNSUBSCRIBE = b"\xa2\x05\0\x02\0\1t"
DELAY = b"\x18\0\0\x01\0"  # of a will
OPTIONS = b"\x0b\x05"  # subscription identifier


class Stage:
    """A broker over a medium, and the clients of one scene."""

    def __init__(self, medium):
        self.world = World(Broker(Limits(**LIMITS), Settings(sys_interval=0)))
        self.broker = self.world.broker
        self.clients = {}
        restore(self.broker, medium, lambda text: None)

    def come(self, name, said):
        client = self.clients[name] = Client(Stream())
        self.world.listener.waiting.append(client.stream)
        client.send(said)

    def say(self, name, said):
        self.clients[name].send(said)

    def heard(self):
        """How many bytes have reached clients."""
        return sum(len(client.stream.received) for client in self.clients.values())


# The steps: (client, bytes) for one that comes, (client, None, bytes) for one that is there.
def reader(qos):
    return [("reader", connect("reader", clean=False) + subscribe(1, "t", qos))]


WRITER = [("writer", connect("writer", clean=False))]
GONE = [("reader", None, DISCONNECT)]
FIVE = [("five", packets5.connect("five", clean=False, expiry=99))]
WAITING = reader(1) + GONE + WRITER  # a reader that is away
HELD = reader(2) + WRITER + [("writer", None, publish("t", b"two", 2, 7))]

# name: (what is there before, what is cut, its kind)
SCENES = {
    "HEAD": (WAITING, ["compact"], 1),
    "SESSION": ([], WRITER, 2),
    "SESSION, its will": ([], [("w", connect("w", clean=False, will=("will", "x", 1)))], 2),
    "SESSION of 5.0": (
        [],
        [("v", packets5.connect("v", will=("will", "x", 1, DELAY), clean=False, expiry=9))],
        2,
    ),
    "SESSION_GONE": (WAITING, [("reader", connect("reader"))], 3),
    "SUBSCRIPTION": (WRITER, [("writer", None, subscribe(9, "a/+/c", 2))], 4),
    "SUBSCRIPTION, shared": (
        FIVE,
        [("five", None, packets5.subscribe(3, "$share/g/t", 1, OPTIONS))],
        4,
    ),
    "SUBSCRIPTION_GONE": (reader(1), [("reader", None, UNSUBSCRIBE)], 5),
    "MESSAGE": (WAITING, [("writer", None, publish("t", b"m" * 70, 1, 8))], 6),
    "DELIVERY": (WAITING, [("writer", None, publish("t", b"", 1, 8) * 2)], 7),
    "DELIVERY_RELEASED": (HELD, [("reader", None, ack(PUBREC, 1))], 8),
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
            stage.come(*step)
        else:
            stage.say(step[0], step[2])
        for _ in range(TURNS):
            stage.world.turn()
            note()


def picture(broker):
    """What the broker remembers beyond connections, in an order that slots do not decide."""
    found = []
    sessions = broker.sessions
    for session in range(sessions.slots):
        if sessions.used(session):
            found.append(_session(broker, session))
    for slot in range(broker.retained.slots):
        if broker.retained.msg[slot] != NONE:
            found.append(("retained",) + _message(broker, broker.retained.msg[slot]))
    return sorted(found)


def _session(broker, session):
    sessions = broker.sessions
    will = sessions.will[session]
    first = session * sessions.received
    ids = list(sessions.ids[first : first + sessions.id_count[session]])
    return (
        "session",
        sessions.client_id(session),
        sessions.clean[session],
        broker.five.expiry[session],
        _message(broker, will) if will != NONE else (),
        sorted(ids),
        _subscriptions(broker, session),
        _queue(broker, session),
    )


def _subscriptions(broker, session):
    subs, five = broker.subscriptions, broker.five
    found = []
    sub = broker.sessions.first_sub[session]
    while sub != NONE:
        text = bytearray(64)
        start = subs.filter_text(subs.node[sub], text, 64)
        group = five.share[sub]
        name = bytearray(16)
        n = five.shares.names.read(group, name, 0) if group != NONE else 0
        row = (bytes(text[start:]), subs.qos[sub], five.options[sub], five.identifier[sub])
        found.append(row + (bytes(name[:n]),))
        sub = subs.next_in_session[sub]
    return sorted(found)


def _queue(broker, session):
    deliveries = broker.deliveries
    found = []
    entry = broker.sessions.head[session]
    while entry != NONE:
        msg = deliveries.msg[entry]
        row = (entry + 1, deliveries.state[entry], deliveries.flags[entry] & 15)
        found.append(row + (_message(broker, msg) if msg != NONE else ()))
        entry = deliveries.next[entry]
    return found


def _message(broker, msg):
    messages = broker.messages
    n = messages.topic_len[msg] + messages.payload_len[msg] + 2
    text = bytearray(n)
    messages.arena.move(messages.first[msg], 0, text, 0, n, 1)
    return messages.flags[msg] & 15, bytes(text)
