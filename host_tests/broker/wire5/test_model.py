"""Random orders of events in all versions, against the model: each client gets what it is owed,
also while messages expire and delayed wills are published."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from ..wire.scene import spec
from . import codec
from .codec import AS_PUBLISHED, HANDLING, NO_LOCAL, Publish
from .model import LONG, SHORT, Players, Session, Subscription, Will

NAMES = st.sampled_from(["ada", "bob", "eve"])
QOS = st.sampled_from([0, 1, 2])
TOPICS = st.sampled_from(["a", "a/b", "a/b/c", "b", "b/"])
FILTERS = st.sampled_from(["a", "a/b", "a/+", "a/#", "+/b", "+/+/c", "b/#", "#", "b/"])
# Ada's packets: also where a byte more makes the length of the length another.
LARGEST = st.sampled_from([0, 0, 129, 130, 131, 500])
PAYLOADS = st.sampled_from([b"", b"one", b"two", b"large" * 200])
EDGES = st.integers(-1, 1)  # bytes by which a message misses or exceeds Ada's largest packet
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


KINDS = [
    pytest.param("defaults", marks=pytest.mark.config("# for the model")),
    pytest.param("QoS 2 at PUBREL", marks=pytest.mark.config("qos2_delivery release")),
    # Every packet is cut, and every larger message is sent in chunks.
    pytest.param(
        "small buffers",
        marks=pytest.mark.config("limit tx_bytes 128\nlimit rx_bytes 64\nlimit tail_bytes 16"),
    ),
]


class Events(Players, RuleBasedStateMachine):
    """Ada speaks 5.0, bob 3.1.1 or 5.0 at each connect; eve never acknowledges."""

    only_older = False
    lives = PROPERTIES
    delays: tuple[int, ...] = (0, LONG)  # of ada's will

    def __init__(self, broker, send):
        RuleBasedStateMachine.__init__(self)
        Players.__init__(self, broker, send)
        self.who = ""  # the client of the next step, if it is not to be drawn

    def teardown(self):
        self.close()

    def connected(self, data):
        name = self.who or data.draw(st.sampled_from(sorted(self.clients)))
        return name, self.clients[name]

    def wills(self, name):
        return st.builds(
            lambda topic, qos, retain, properties, delay: Will(
                Publish(self.under(topic), b"gone", qos, retain, properties=properties), delay
            ),
            TOPICS, QOS, st.booleans(), PROPERTIES,
            st.sampled_from(self.delays if name == "ada" else Events.delays),
        )  # fmt: skip

    def edge(self, name, message, more):
        """The message with a payload that makes Ada's packet about as large as she takes."""
        ada = self.model.sessions.get("ada")
        head = self.model.size("ada", name, message)
        size = max(0, ada.largest + more - head) if ada and head else 10
        return replace(message, payload=b"e" * size)

    @initialize(data=st.data(), away=st.booleans())
    def begin(self, data, away):
        """Ada subscribes to everything; perhaps she is away at first."""
        self.connect(data, "ada", False, True, False, data.draw(LARGEST))
        self.subscribe(data, "#", 2, False, 0, data.draw(IDENTIFIERS))
        if away:
            self.drop(data)
        self.connect(data, "bob", True, False, data.draw(st.booleans()), 0)

    @rule(
        data=st.data(),
        name=NAMES,
        clean=st.booleans(),
        keep=st.booleans(),
        older=st.booleans(),
        largest=LARGEST,
    )
    def connect(self, data, name, clean, keep, older, largest):
        will = data.draw(st.none() | self.wills(name))
        older = self.only_older or (older and name == "bob")
        largest = largest if name == "ada" and not older else 0
        keep = not clean if older else keep
        session = Session(keep, older=older, largest=largest, will=will)
        present = self.model.connect(name, clean, session)
        old = self.clients.get(name)
        terms = {"topic_alias_maximum": data.draw(st.sampled_from([0, 1, 3]))}
        if name != "eve":
            terms["receive_maximum"] = data.draw(st.sampled_from([1, 2, 65535]))
        self.clients[name] = client = self.start(name, clean, session, terms)
        self.aliases[name] = {}
        if old:
            old.expect_end()
        assert client.connack.session_present == present
        self.settle()

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
        self.note_delay(session)
        self.model.leave(name, with_will=with_will, ends=ends)
        self.settle()

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def drop(self, data):
        name, client = self.connected(data)
        del self.clients[name]
        client.drop()
        self.note_delay(self.model.sessions[name])
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
        else:  # all of one client's are alike, since how they mix is not specified
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
            return  # not specified: what such a name is to an older client
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
        payload=PAYLOADS | EDGES,
        qos=QOS,
        retain=st.booleans(),
        alias=st.sampled_from([0, 0, 1, 2]),
    )
    def publish(self, data, topic, payload, qos, retain, alias):
        name, client = self.connected(data)
        older = self.model.sessions[name].older
        properties = {} if older else data.draw(self.lives)
        shared = topic.startswith("s/")
        topic = self.under(topic)
        if shared:  # not specified: whether the member got it, if it is too large
            payload, retain = b"edge" if isinstance(payload, int) else payload[:5], False
        message = Publish(topic, payload, qos, retain, properties=properties)
        if isinstance(payload, int):
            message = self.edge(name, message, payload)
            payload = message.payload
        if older:
            client.publish(topic, payload, qos, retain=retain)
        else:
            sent, more = topic, dict(properties)
            if alias:
                more["topic_alias"] = alias
                sent = "" if self.aliases[name].get(alias) == topic else topic
                self.aliases[name][alias] = topic
            client.publish(sent, payload, qos, retain=retain, **more)
        if properties.get("message_expiry") == SHORT:
            self.begin_short()
        self.model.publish(name, message)
        self.settle()


class Older(Events):
    """All three speak 3.1.1."""

    only_older = True


@pytest.mark.ours("mosquitto takes the first of overlapping filters, and drops some wills")
@spec("4.5.0-1 4.6.0-6 3.3.5-1 4.4.0-1 3.1.2-4", "4.5.0-1 3.3.4-2 4.4.0-1 3.1.2-8")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("events", [Older, Events])
def test_each_client_gets_what_it_is_owed(broker, send, kind, events):
    assert broker.alive(), kind
    machine = lambda: events(broker, send)  # noqa: E731
    run_state_machine_as_test(machine, settings=SETTINGS)  # type: ignore[arg-type]


SHORTLY = st.just({"message_expiry": SHORT})
WAITS = 2  # in an example
# No shrinking: each attempt would wait again.
BRIEFLY = settings(SETTINGS, max_examples=5, phases=[Phase.reuse, Phase.generate])


class Timed(Events):
    """As Events; some messages and delays end meanwhile."""

    lives = PROPERTIES | SHORTLY
    delays = (0, SHORT, SHORT, LONG)

    def __init__(self, broker, send):
        super().__init__(broker, send)
        self.waits = WAITS

    @invariant()
    def in_time(self):
        self.keep_time()

    @precondition(lambda self: self.waits)
    @rule(data=st.data(), topics=st.lists(TOPICS | st.just("s/1"), min_size=1, max_size=3))
    def wait(self, data, topics):
        """Ada is away; what eve publishes meanwhile has expired when she is back."""
        self.waits -= 1
        for name in sorted({"ada", "eve"} - {*self.clients}):
            self.connect(data, name, False, True, False, 0)
        self.who = "ada"
        self.drop(data)
        self.who, self.lives = "eve", SHORTLY
        for topic in topics:
            self.publish(data, topic, b"meanwhile", data.draw(QOS), data.draw(st.booleans()), 0)
        self.who, self.lives = "", Timed.lives
        self.pass_time()
        self.look()


@pytest.mark.waits
@pytest.mark.ours("mosquitto takes the first of overlapping filters, and drops some wills")
@spec(new="3.3.2-5 3.1.3-9 3.1.2-8")
def test_each_client_gets_what_has_not_expired(broker, send):
    machine = lambda: Timed(broker, send)  # noqa: E731
    run_state_machine_as_test(machine, settings=BRIEFLY)  # type: ignore[arg-type]
