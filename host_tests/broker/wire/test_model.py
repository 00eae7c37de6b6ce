"""Any order of events, against the model: everyone gets what they are owed, and no more."""

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    precondition,
    rule,
    run_state_machine_as_test,
)

from .codec import DISCONNECT, Publish, Will
from .model import Model, matches
from .scene import Scene

NAMES = st.sampled_from(["ada", "bob", "eve"])
QOS = st.sampled_from([0, 1, 2])
TOPICS = st.sampled_from(["a", "a/b", "a/b/c", "b", "b/"])
FILTERS = st.sampled_from(["a", "a/b", "a/+", "a/#", "+/b", "+/+/c", "b/#", "#", "b/"])
PAYLOADS = st.sampled_from([b"", b"one", b"two", b"three" * 200])
KINDS = [
    pytest.param("as it comes", marks=pytest.mark.config("# for the model")),
    pytest.param("QoS 2 at PUBREL", marks=pytest.mark.config("qos2_delivery release")),
    # Everything is cut, and every larger message leaves in parts.
    pytest.param(
        "small buffers",
        marks=pytest.mark.config("limit tx_bytes 128\nlimit rx_bytes 64\nlimit tail_bytes 16"),
    ),
]
SETTINGS = settings(
    max_examples=50,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def by_stream(messages):
    """In order, as far as order is promised: by topic and QoS."""
    return sorted(messages, key=lambda m: (m.topic, m.qos))


class Events(RuleBasedStateMachine):
    """Three clients on one broker, each in its own topics of the test."""

    def __init__(self, broker, send):
        super().__init__()
        self.scene = Scene(broker, send)
        self.root = self.scene.topic
        self.model = Model()
        self.clients = {}

    def teardown(self):
        if self.scene.broker.alive():
            for client in self.clients.values():
                client.send(DISCONNECT)
                client.expect_end()
            janitor = self.scene.connect()
            for topic in self.model.retained:
                janitor.publish(topic, b"", retain=True)
        self.scene.close()

    def under(self, name):
        return f"{self.root}/{name}"

    def settle(self):
        """Everyone reads; eve never acknowledges."""
        for name, client in self.clients.items():
            acknowledge = name != "eve"
            expected = self.model.read(name, acknowledge=acknowledge)
            found = client.receive_all() if acknowledge else client.publishes()
            assert by_stream(found) == by_stream(expected), name

    @rule(
        name=NAMES,
        clean=st.booleans(),
        topic=TOPICS,
        qos=QOS,
        retain=st.booleans(),
        mortal=st.booleans(),
    )
    def connect(self, name, clean, topic, qos, retain, mortal):
        will = Will(self.under(topic), b"gone", qos, retain) if mortal else None
        present = self.model.connect(name, clean, will)
        old = self.clients.get(name)
        self.clients[name] = self.scene.connect(name, clean=clean, will=will)
        if old:
            old.expect_end()
        assert self.clients[name].connack.session_present == present
        self.settle()

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), in_order=st.booleans())
    def leave(self, data, in_order):
        name = data.draw(st.sampled_from(sorted(self.clients)))
        client = self.clients.pop(name)
        if in_order:
            client.disconnect()
        else:
            client.drop()
        self.model.leave(name, in_order=in_order)
        self.settle()

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), topic_filter=FILTERS, qos=QOS)
    def subscribe(self, data, topic_filter, qos):
        name = data.draw(st.sampled_from(sorted(self.clients)))
        self.clients[name].subscribe(self.under(topic_filter), qos=qos)
        self.model.subscribe(name, self.under(topic_filter), qos)
        self.settle()

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), topic_filter=FILTERS)
    def unsubscribe(self, data, topic_filter):
        name = data.draw(st.sampled_from(sorted(self.clients)))
        self.clients[name].unsubscribe(self.under(topic_filter))
        self.model.unsubscribe(name, self.under(topic_filter))
        self.settle()

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), topic=TOPICS, payload=PAYLOADS, qos=QOS, retain=st.booleans())
    def publish(self, data, topic, payload, qos, retain):
        name = data.draw(st.sampled_from(sorted(self.clients)))
        self.clients[name].publish(self.under(topic), payload, qos, retain=retain)
        self.model.publish(Publish(self.under(topic), payload, qos, retain))
        self.settle()


@pytest.mark.ours("mosquitto takes the first of overlapping filters, and drops some wills")
@pytest.mark.spec("MQTT-4.5.0-1", "MQTT-4.6.0-6", "MQTT-3.3.5-1", "MQTT-4.4.0-1", "MQTT-3.1.2-4")
@pytest.mark.parametrize("kind", KINDS)
def test_everyone_gets_what_they_are_owed(broker, send, kind):
    assert broker.alive(), kind
    machine = lambda: Events(broker, send)  # noqa: E731
    run_state_machine_as_test(machine, settings=SETTINGS)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("topic_filter", "topic", "match"),
    [("a/#", "a", True), ("a/+", "a", False), ("+/b", "a/b", True), ("a", "a/b", False)],
)
def test_the_models_own_idea_of_a_match(topic_filter, topic, match):
    assert matches(topic_filter, topic) is match
