"""The clients of a test beside the model of what they are owed."""

import time
from dataclasses import replace
from typing import Any

from . import codec
from .codec import Publish
from .model import SHORT, Model, Session, Subscription, Will
from .scene import Scene

LONG = 100_000  # seconds; no test takes that long
_LATE = 0.5  # seconds by which the broker may be late
_SURE = SHORT / 2  # seconds after which SHORT may be over


def by_stream(messages: list[Publish]) -> list[Publish]:
    """Sorted by topic and QoS: within these the order is promised."""
    return sorted(messages, key=lambda m: (m.topic, m.qos))


def as_new(message: Any) -> Publish:
    """The message as the model has it, whatever version it came in."""
    properties = dict(getattr(message, "properties", {}))
    if "subscription_id" in properties:
        properties["subscription_id"] = tuple(sorted(properties["subscription_id"]))
    if "message_expiry" in properties:
        left = properties["message_expiry"]
        properties["message_expiry"] = LONG if LONG - 100 < left <= LONG else left
        if 0 < left <= SHORT:
            properties["message_expiry"] = SHORT
    fields = (message.topic, message.payload, message.qos, message.retain, message.dup)
    return Publish(*fields, properties=properties)


class Players:
    def __init__(self, broker, send):
        self.scene = Scene(broker, send)
        self.root = self.scene.topic
        self.model = Model()
        self.clients = {}
        self.aliases = {}
        self.since = self.until = 0.0  # when the first and the last short thing has begun

    def close(self):
        if self.scene.broker.alive():
            for client in self.clients.values():
                client.send(codec.DISCONNECT)
                client.expect_end()
            janitor = self.scene.connect()
            for topic in self.model.retained:
                janitor.publish(topic, b"", retain=True)
        self.scene.close()

    def under(self, name):
        """Shared topics (s/...) have a root of their own: how a group and a filter of the same
        client overlap is not specified."""
        return f"{self.root}{name}" if name.startswith("s/") else f"{self.root}/{name}"

    def settle(self):
        """Every client reads, and gets what the model says; eve never acknowledges."""
        for name, client in self.clients.items():
            expected = self.model.read(name, acknowledge=name != "eve")
            found: list[Publish] = []
            while batch := client.publishes() if name == "eve" else client.receive_all():
                found += map(as_new, batch)
            shared = [message for message in found if message.topic.startswith(f"{self.root}s/")]
            alone = [message for message in found if message not in shared]
            assert by_stream(alone) == by_stream(expected), name
            assert all(self.model.claim(name, message) for message in shared), (name, shared)
        assert not list(self.model.unclaimed())

    def begin_short(self):
        """Something short begins in this step."""
        self.until = time.monotonic()
        self.since = self.since or self.until

    def note_delay(self, session):
        """Its connection has ended: perhaps its will goes out soon."""
        if session.will and session.will.delay == SHORT:
            self.begin_short()

    def keep_time(self):
        """Before a step: if something short may be over, wait until it surely is."""
        if self.since and time.monotonic() - self.since > _SURE:
            self.pass_time()

    def pass_time(self):
        time.sleep(max(0.0, self.until + SHORT + _LATE - time.monotonic()))
        self.since = 0.0
        self.model.pass_time()
        self.settle()

    def look(self):
        """Clients that were away connect and read what is left, and a new client does, too."""
        away = [name for name, session in self.model.sessions.items() if not session.connected]
        for name in [*away, "late"]:
            session = Session(name != "late", older=False)
            present = self.model.connect(name, False, session)
            self.clients[name] = client = self.start(name, False, session, {})
            assert client.connack.session_present == present
            if name == "late":
                client.subscribe(f"{self.root}/#", qos=2)
                new = Subscription(2)
                self.model.subscribe(name, f"{self.root}/#", new, always=True, never=False)
            self.settle()
            del self.clients[name]
            client.drop()
            self.model.close(name)

    def start(self, name, clean, session, terms):
        """Connect as the session says; an older client's will has no properties and no delay."""
        if session.older and session.will:
            session.will = Will(replace(session.will.message, properties={}))
        will = None
        if session.will:
            message = session.will.message
            delay = {"will_delay": session.will.delay} if session.will.delay else {}
            will = codec.Will(
                message.topic, message.payload, message.qos, message.retain,
                {**message.properties, **delay},
            )  # fmt: skip
        if session.older:
            return self.scene.older(name, clean=clean, will=will)
        if session.largest:  # an alias would change the size
            terms = {**terms, "maximum_packet_size": session.largest, "topic_alias_maximum": 0}
        expiry = LONG if session.kept else 0
        return self.scene.connect(name, clean=clean, session_expiry=expiry, will=will, **terms)
