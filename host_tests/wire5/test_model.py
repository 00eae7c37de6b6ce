"""Any order of events in all versions, against the model: everyone gets what they are owed."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    precondition,
    rule,
    run_state_machine_as_test,
)

from ..wire.test_model import FILTERS, KINDS, QOS, TOPICS, by_stream
from . import codec
from .codec import AS_PUBLISHED, HANDLING, NO_LOCAL, Publish
from .model import Model, Session, Subscription, Will
from .scene import Scene

NAMES = st.sampled_from(["ada", "bob", "eve"])
LARGE = b"large" * 200  # far beyond SMALLEST, as all else is far below it
SMALLEST = 500
LONG = 100_000  # seconds that no test lasts
PAYLOADS = st.sampled_from([b"", b"one", b"two", LARGE])
PROPERTIES = st.sampled_from(
    [
        {},
        {"content_type": "text"},
        {"user": (("a", "1"), ("a", "2"), ("", ""))},
        {"payload_format": 0, "response_topic": "r", "correlation_data": b"\0"},
        {"message_expiry": LONG},
    ]
)
IDENTIFIERS = st.sampled_from([0, 0, 1, 2, 300])
SETTINGS = settings(
    max_examples=40,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def as_new(message):
    """A message as the model says it, whatever version it came in."""
    properties = dict(getattr(message, "properties", {}))
    if "subscription_id" in properties:
        properties["subscription_id"] = tuple(sorted(properties["subscription_id"]))
    if LONG - 100 < properties.get("message_expiry", 0) <= LONG:
        properties["message_expiry"] = LONG
    fields = (message.topic, message.payload, message.qos, message.retain, message.dup)
    return Publish(*fields, properties=properties)


class Events(RuleBasedStateMachine):
    """Ada speaks 5.0, bob 3.1.1 or 5.0 at each connect; eve never acknowledges."""

    def __init__(self, broker, send):
        super().__init__()
        self.scene = Scene(broker, send)
        self.root = self.scene.topic
        self.model = Model()
        self.clients = {}
        self.aliases = {}

    def teardown(self):
        if self.scene.broker.alive():
            for client in self.clients.values():
                client.send(codec.DISCONNECT)
                client.expect_end()
            janitor = self.scene.connect()
            for topic in self.model.retained:
                janitor.publish(topic, b"", retain=True)
        self.scene.close()

    def under(self, name):
        """Shared topics (s/...) have a root of their own: how groups overlap is not told."""
        return f"{self.root}{name}" if name.startswith("s/") else f"{self.root}/{name}"

    def connected(self, data):
        name = data.draw(st.sampled_from(sorted(self.clients)))
        return name, self.clients[name]

    def settle(self):
        """Everyone reads; what is not theirs alone came to them as one of a group."""
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

    @rule(
        data=st.data(),
        name=NAMES,
        clean=st.booleans(),
        keep=st.booleans(),
        older=st.booleans(),
        small=st.booleans(),
    )
    def connect(self, data, name, clean, keep, older, small):
        will = data.draw(st.none() | self.wills())
        older, small = older and name == "bob", small and name == "ada"
        keep = not clean if older else keep
        session = Session(keep, older=older, largest=SMALLEST if small else 0, will=will)
        present = self.model.connect(name, clean, session)
        old = self.clients.get(name)
        self.clients[name] = client = self.start(name, clean, session, data)
        self.aliases[name] = {}
        if old:
            old.expect_end()
        assert client.connack.session_present == present
        self.settle()

    def wills(self):
        return st.builds(
            lambda topic, qos, retain, properties, delayed: Will(
                Publish(self.under(topic), b"gone", qos, retain, properties=properties), delayed
            ),
            TOPICS, QOS, st.booleans(), PROPERTIES, st.booleans(),
        )  # fmt: skip

    def start(self, name, clean, session, data):
        """The client as the session says; an older one's will has no properties and no delay."""
        if session.older and session.will:
            session.will = Will(replace(session.will.message, properties={}))
        will = None
        if session.will:
            message = session.will.message
            delay = {"will_delay": LONG} if session.will.delayed else {}
            will = codec.Will(
                message.topic, message.payload, message.qos, message.retain,
                {**message.properties, **delay},
            )  # fmt: skip
        if session.older:
            return self.scene.older(name, clean=clean, will=will)
        terms = {"topic_alias_maximum": data.draw(st.sampled_from([0, 1, 3]))}
        if name != "eve":
            terms["receive_maximum"] = data.draw(st.sampled_from([1, 2, 65535]))
        if session.largest:
            terms["maximum_packet_size"] = session.largest
        expiry = LONG if session.kept else 0
        return self.scene.connect(name, clean=clean, session_expiry=expiry, will=will, **terms)

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), with_will=st.booleans(), ends=st.booleans())
    def leave(self, data, with_will, ends):
        name, client = self.connected(data)
        del self.clients[name]
        session = self.model.sessions[name]
        if session.older:
            client.disconnect()
            with_will = ends = False
        else:
            code = codec.WITH_WILL if with_will else codec.NORMAL
            client.disconnect(code, **({"session_expiry": 0} if ends else {}))
        self.model.leave(name, with_will=with_will, ends=ends)
        self.settle()

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def drop(self, data):
        name, client = self.connected(data)
        del self.clients[name]
        client.drop()
        self.model.close(name)
        self.settle()

    @precondition(lambda self: self.clients)
    @rule(
        data=st.data(),
        topic_filter=FILTERS,
        qos=QOS,
        no_local=st.booleans(),
        handling=st.sampled_from(HANDLING),
        identifier=IDENTIFIERS,
    )
    def subscribe(self, data, topic_filter, qos, no_local, handling, identifier):
        name, client = self.connected(data)
        topic_filter = self.under(topic_filter)
        if self.model.sessions[name].older:
            client.subscribe(topic_filter, qos=qos)
            self.model.subscribe(name, topic_filter, Subscription(qos), always=True, never=False)
        else:  # all of one client's are alike, since how they mix is not told
            options = NO_LOCAL * no_local | AS_PUBLISHED * (name == "ada") | handling
            named = {"subscription_id": identifier} if identifier else {}
            client.subscribe(topic_filter, qos=qos, options=options, **named)
            new = Subscription(qos, no_local, name == "ada", identifier)
            always, _, never = (handling == one for one in HANDLING)
            self.model.subscribe(name, topic_filter, new, always=always, never=never)
        self.settle()

    @precondition(lambda self: not {"ada", "bob"}.isdisjoint(self.clients))
    @rule(data=st.data(), qos=QOS, identifier=IDENTIFIERS)
    def share(self, data, qos, identifier):
        name = data.draw(st.sampled_from(sorted({"ada", "bob"} & {*self.clients})))
        if self.model.sessions[name].older:
            return
        topic_filter = f"$share/group/{self.under('s/+')}"
        named = {"subscription_id": identifier} if identifier else {}
        self.clients[name].subscribe(topic_filter, qos=qos, **named)
        new = Subscription(qos, identifier=identifier)
        self.model.subscribe(name, topic_filter, new, always=True, never=False)
        self.settle()

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), topic_filter=FILTERS | st.just("$share"))
    def unsubscribe(self, data, topic_filter):
        name, client = self.connected(data)
        if topic_filter == "$share" and self.model.sessions[name].older:
            return  # what such a name is to an older client is not told
        shared = f"$share/group/{self.under('s/+')}"
        topic_filter = shared if topic_filter == "$share" else self.under(topic_filter)
        known = self.model.unsubscribe(name, topic_filter)
        if self.model.sessions[name].older:
            client.unsubscribe(topic_filter)
        else:
            assert client.withdraw(topic_filter) == ((0,) if known else (0x11,))
        self.settle()

    @precondition(lambda self: self.clients)
    @rule(
        data=st.data(),
        topic=TOPICS | st.sampled_from(["s/1", "s/2"]),
        payload=PAYLOADS,
        qos=QOS,
        retain=st.booleans(),
        properties=PROPERTIES,
        alias=st.sampled_from([0, 0, 1, 2]),
    )
    def publish(self, data, topic, payload, qos, retain, properties, alias):
        name, client = self.connected(data)
        if topic.startswith("s/"):  # whether it counts as got, if it is too large, is not told
            payload, retain = payload[:5], False
        topic = self.under(topic)
        if self.model.sessions[name].older:
            client.publish(topic, payload, qos, retain=retain)
            properties = {}
        else:
            sent, more = topic, dict(properties)
            if alias:
                more["topic_alias"] = alias
                sent = "" if self.aliases[name].get(alias) == topic else topic
                self.aliases[name][alias] = topic
            client.publish(sent, payload, qos, retain=retain, **more)
        message = Publish(topic, payload, qos, retain, properties=properties)
        self.model.publish(name, message)
        self.settle()


@pytest.mark.ours("mosquitto takes the first of overlapping filters, and drops some wills")
@pytest.mark.spec("MQTT-4.5.0-1", "MQTT-3.3.4-2", "MQTT-4.4.0-1", "MQTT-3.1.2-8", of="5.0")
@pytest.mark.parametrize("kind", KINDS)
def test_everyone_gets_what_they_are_owed(broker, send, kind):
    assert broker.alive(), kind
    machine = lambda: Events(broker, send)  # noqa: E731
    run_state_machine_as_test(machine, settings=SETTINGS)  # type: ignore[arg-type]
