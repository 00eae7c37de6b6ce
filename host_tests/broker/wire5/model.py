"""A model of a broker of all versions, in dicts: which client is owed which messages after a step;
and the clients of a test beside it.

It has no packets, no windows, and one step of time: what lasts SHORT ends with pass_time(),
what lasts longer never ends. After each step the clients read all that they are sent, and
acknowledge it then or never. For a shared subscription the model says which clients may get
a message, not which one does.
"""

import time
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from slotmq_tools.codec import matches

from . import codec
from .codec import Properties, Publish
from .scene import Scene

SHARE = "$share/"
SHORT = 2  # seconds that a test may wait for


@dataclass(frozen=True)
class Subscription:
    qos: int
    no_local: bool = False
    as_published: bool = False
    identifier: int = 0


@dataclass(frozen=True)
class Will:
    message: Publish
    delay: int = 0


@dataclass
class Session:
    kept: bool
    connected: bool = True
    older: bool = False  # of a version without properties
    largest: int = 0  # packet that the client takes, or 0
    will: Will | None = None
    filters: dict[str, Subscription] = field(default_factory=dict)
    unread: list[Publish] = field(default_factory=list)  # owed, and not sent yet
    open: list[Publish] = field(default_factory=list)  # sent, and not acknowledged


@dataclass(frozen=True)
class Claim:
    """A message for one member of a group, with what each member would get."""

    copies: dict[str, Publish]
    certain: bool  # one of them is connected


class Model:
    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}
        self.retained: dict[str, Publish] = {}
        self.claims: list[Claim] = []

    def connect(self, name: str, clean: bool, new: Session) -> bool:
        """A client connects, perhaps a second time. -> was its session there?"""
        old = self.sessions.get(name)
        if old and old.connected:
            self.close(name)
        old = self.sessions.get(name)
        if old and clean:
            self._end(name)
        elif old:
            new.filters = old.filters
            new.unread = [replace(message, dup=True) for message in old.open] + old.unread
        self.sessions[name] = new
        return old is not None and not clean

    def leave(self, name: str, *, with_will: bool, ends: bool) -> None:
        """DISCONNECT, which may drop the will, and may end the session."""
        session = self.sessions[name]
        session.kept = session.kept and not ends
        session.will = session.will if with_will else None
        self.close(name)

    def close(self, name: str) -> None:
        """The connection ends; the will is published now, later, or at the session's end."""
        session = self.sessions[name]
        session.connected = False
        if not session.kept:
            self._end(name)
        elif session.will and not session.will.delay:
            self._publish_will(name)

    def pass_time(self) -> None:
        """What lasts SHORT ends: wills are published, and messages that were not sent expire."""
        for name, session in self.sessions.items():
            if session.will and session.will.delay == SHORT and not session.connected:
                self._publish_will(name)
        for session in self.sessions.values():
            session.unread = [message for message in session.unread if _lasts(message)]
        self.retained = {name: kept for name, kept in self.retained.items() if _lasts(kept)}
        self.claims = [claim for claim in self.claims if all(map(_lasts, claim.copies.values()))]

    def _publish_will(self, name: str) -> None:
        will, self.sessions[name].will = self.sessions[name].will, None
        assert will
        self.publish(name, will.message)

    def _end(self, name: str) -> None:
        will = self.sessions.pop(name).will
        if will:
            self.publish(name, will.message)

    def subscribe(
        self, name: str, topic_filter: str, new: Subscription, *, always: bool, never: bool
    ) -> None:
        session = self.sessions[name]
        known = topic_filter in session.filters
        session.filters[topic_filter] = new
        if never or topic_filter.startswith(SHARE) or (known and not always):
            return
        for kept in self.retained.values():
            if matches(topic_filter, kept.topic):
                session.unread.append(_copy(kept, [new], retain=True))

    def unsubscribe(self, name: str, topic_filter: str) -> bool:
        return self.sessions[name].filters.pop(topic_filter, None) is not None

    def publish(self, publisher: str, message: Publish) -> None:
        if message.retain:
            self.retained.pop(message.topic, None)
            if message.payload:
                self.retained[message.topic] = message
        shares: dict[str, dict[str, Publish]] = {}
        for name, session in self.sessions.items():
            found = []
            for topic_filter, subscription in session.filters.items():
                if topic_filter.startswith(SHARE):
                    if matches(topic_filter.split("/", 2)[2], message.topic):
                        shares.setdefault(topic_filter, {})[name] = _copy(message, [subscription])
                elif subscription.no_local and name == publisher:
                    continue
                elif matches(topic_filter, message.topic):
                    found.append(subscription)
            copy = _copy(message, found)
            if found and (session.connected or copy.qos):
                session.unread.append(copy)
        self.claims += map(self._claim, shares.values())

    def size(self, name: str, publisher: str, message: Publish) -> int:
        """The length, without the payload, of the packet that this client would get; or 0."""
        session = self.sessions.get(name)
        if not session or not session.largest:
            return 0
        trial = deepcopy(self)
        before = len(session.unread)
        trial.publish(publisher, replace(message, payload=b""))
        found = trial.sessions[name].unread[before:]
        return len(_packet(found[0])) if found else 0

    def _claim(self, copies: dict[str, Publish]) -> Claim:
        there = {name: copy for name, copy in copies.items() if self.sessions[name].connected}
        waiting = {name: copy for name, copy in copies.items() if copy.qos}
        return Claim(there or waiting, bool(there))

    def read(self, name: str, *, acknowledge: bool) -> list[Publish]:
        """What the client is sent now, without messages of shared subscriptions."""
        session = self.sessions[name]
        unread = [message for message in session.unread if _fits(message, session)]
        session.unread = []
        if not acknowledge:
            session.open += [message for message in unread if message.qos]
        return [replace(m, properties={}) if session.older else m for m in unread]

    def claim(self, name: str, message: Publish) -> bool:
        """May this client have got this message as a member of a group? Then no other may."""
        older = self.sessions[name].older
        # Of two equal messages, take the one that must have come.
        for claim in sorted(self.claims, key=lambda claim: not claim.certain):
            copy = claim.copies.get(name)
            if copy and message == (replace(copy, properties={}) if older else copy):
                self.claims.remove(claim)
                return True
        return False

    def unclaimed(self) -> Iterator[Claim]:
        """The messages that a member of a group must have got by now."""
        return (claim for claim in self.claims if claim.certain)


def _copy(message: Publish, by: list[Subscription], *, retain: bool = False) -> Publish:
    """The message as a client with these subscriptions gets it."""
    properties: Properties = dict(message.properties)
    numbers = tuple(sorted(one.identifier for one in by if one.identifier))
    if numbers:
        properties["subscription_id"] = numbers
    kept = retain or (message.retain and any(one.as_published for one in by))
    qos = min(message.qos, max((one.qos for one in by), default=0))
    return replace(message, qos=qos, retain=kept, properties=properties)


def _lasts(message: Publish) -> bool:
    return message.properties.get("message_expiry") != SHORT


def _packet(message: Publish) -> bytes:
    return codec.publish(message.topic, message.payload, message.qos, 1, **message.properties)


def _fits(message: Publish, session: Session) -> bool:
    return not session.largest or len(_packet(message)) <= session.largest


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
