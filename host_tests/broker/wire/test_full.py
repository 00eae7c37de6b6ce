"""Full tables and quotas: the client that exceeds one is refused, and the others are served."""

import time

import pytest

from . import codec
from .codec import Ack, Will
from .refusals import code_of
from .scene import each_version, spec

SHARES = "max_session_share 100\nmax_offline_share 100\n"
QUEUE = f"limit messages 6\nlimit deliveries 100\n{SHARES}"
RELEASE = "qos2_delivery release\n"
EVICT = "when_full sessions drop_oldest"
QOS = pytest.mark.parametrize("qos", [1, 2])

pytestmark = pytest.mark.ours("mosquitto's tables grow")


def configured(*texts):
    """The test runs with each of these configurations."""
    cases = [pytest.param(text, marks=pytest.mark.config(text)) for text in texts]
    return pytest.mark.parametrize("config", cases)


def refused(mqtt, *codes, name="", **options):
    """A client that is refused with the code of its version."""
    mqtt.socket().expect_refused(mqtt.packet(name, **options), *codes)


def present(mqtt, name):
    """Does the broker know this client's session?"""
    return mqtt.connect(name, clean=False).connack.session_present


@each_version()
class TestConnections:
    @pytest.mark.config("max_connections 2")
    def test_one_client_too_many_is_refused(self, mqtt):
        first, second = mqtt.connect("first"), mqtt.connect("second")
        for _ in range(3):
            refused(mqtt, 3, 0x88)
        again = mqtt.connect("first")  # a takeover needs no free connection
        first.expect_disconnect(0x8E)
        again.disconnect()
        third = mqtt.connect("third")
        for client in (second, third):
            client.expect_silence()

    @pytest.mark.config("limit connections 2")
    def test_sockets_beyond_the_table_wait_and_are_served_in_turn(self, mqtt, topic):
        first, second = mqtt.connect("first"), mqtt.connect("second")
        crowd = [mqtt.socket() for _ in range(4)]
        first.publish(topic, b"x", 1)
        for client in crowd:
            client.send(mqtt.packet())
        for client in crowd:
            assert client.next().code in (3, 0x88)
            client.expect_last()
        second.publish(topic, b"x", 1)


@each_version()
class TestSessions:
    @pytest.mark.config("limit sessions 3\nlimit connections 3\nwhen_full sessions refuse")
    def test_one_session_too_many_is_refused(self, mqtt):
        kept = [mqtt.connect(f"kept{i}", clean=False) for i in range(3)]
        kept[0].disconnect()
        refused(mqtt, 3, 0x97)
        refused(mqtt, 3, 0x97, clean=False)
        kept[1].expect_silence()
        assert not mqtt.connect("kept0", clean=True).connack.session_present

    @pytest.mark.config(f"limit sessions 3\nlimit connections 3\n{EVICT}")
    def test_with_drop_oldest_the_session_that_left_first_is_dropped(self, mqtt, topic):
        for i in range(3):
            mqtt.reader(topic, name=f"kept{i}", clean=False).disconnect()
            time.sleep(0.11)  # the broker's clock for it has tenths of a second
        mqtt.connect("new").disconnect()
        assert [present(mqtt, f"kept{i}") for i in (2, 1, 0)] == [True, True, False]

    @pytest.mark.config(f"limit sessions 2\nlimit connections 2\n{EVICT}")
    def test_with_drop_oldest_no_connected_session_is_dropped(self, mqtt):
        clients = [mqtt.connect(f"here{i}", clean=False) for i in range(2)]
        refused(mqtt, 3, 0x88)
        for client in clients:
            client.expect_silence()


@each_version(new="3.8.4-7 3.9.3-1 3.9.3-2")
class TestSubscriptions:
    @pytest.mark.config("limit subscriptions 3")
    def test_one_subscription_too_many_is_refused_in_its_place(self, mqtt, topic):
        client, full = mqtt.connect(), 0x80 if mqtt.codec is codec else 0x97
        wanted = [(f"{topic}/{i}", 2 - i % 3) for i in range(5)]
        assert client.request(*wanted) == (2, 1, 0, full, full)
        assert client.request((f"{topic}/1", 2)) == (2,)
        client.publish(f"{topic}/4", b"x", 1)
        client.expect_silence()
        client.unsubscribe(f"{topic}/0")
        assert client.request(*reversed(wanted[3:])) == (1, full)
        client.publish(f"{topic}/4", b"x", 1)
        client.receive(f"{topic}/4", b"x", 1)

    @pytest.mark.config("limit nodes 4")
    def test_a_filter_without_free_nodes_is_refused_in_its_place(self, mqtt):
        client, full = mqtt.connect(), 0x80 if mqtt.codec is codec else 0x97
        wanted = ("a/b", 1), ("a/c/d/e", 1), ("a/c", 1), ("x/y", 0)
        assert client.request(*wanted) == (1, full, 1, full)
        client.unsubscribe("a/b", "a/c")
        assert client.request(("x/y/z/#", 2)) == (2,)

    @pytest.mark.config("limit topic_bytes 40\nlimit levels 4")
    def test_a_filter_that_is_too_long_or_too_deep_is_refused_in_its_place(self, mqtt):
        client, bad = mqtt.connect(), 0x80 if mqtt.codec is codec else 0x8F
        wanted = ("a/b/c/d", 1), ("a/b/c/d/e", 1), ("+/+/+/#", 0), ("a" * 40, 1), ("a" * 41, 1)
        assert client.request(*wanted) == (1, bad, 0, 1, bad)
        client.publish("a/b/c/d/e", b"deep topics are legal", 1)
        client.receive("a/b/c/d/e", b"deep topics are legal", 0)
        client.publish("a" * 40, b"x", 1)
        client.receive("a" * 40, b"x", 1)
        client.send(mqtt.codec.publish("a" * 41, b"x", 1, 9))
        client.expect_disconnect(0x90)

    @pytest.mark.config("limit topic_bytes 40\nlimit levels 4")
    @spec(new="3.1.4-1")
    def test_a_will_topic_that_is_too_long_is_refused(self, mqtt, topic):
        name = f"{topic}/" + "x" * 40
        witness = mqtt.reader(name[:40])
        refused(mqtt, 3, 0x90, will=Will(name[:41]))
        mqtt.connect(will=Will(name[:40])).drop()
        witness.receive(name[:40], b"gone")


@each_version()
@pytest.mark.config("limit retained 3")
def test_one_retained_message_too_many_is_passed_on_but_not_stored(mqtt, topic):
    def kept():
        return {m.topic[-1]: m.payload for m in mqtt.reader(f"{topic}/+").publishes()}

    listener, publisher = mqtt.reader(f"{topic}/+"), mqtt.connect()
    for i in range(5):
        publisher.publish(f"{topic}/{i}", b"%d" % i, 1, retain=True)
    assert [m.topic for m in listener.publishes()] == [f"{topic}/{i}" for i in range(5)]
    assert kept() == {f"{i}": b"%d" % i for i in range(3)}
    publisher.publish(f"{topic}/1", b"replaced", retain=True)
    publisher.publish(f"{topic}/0", b"", retain=True)
    publisher.publish(f"{topic}/4", b"fits now", retain=True)
    assert kept() == {"1": b"replaced", "2": b"2", "4": b"fits now"}
    for i in (1, 2, 4):
        publisher.publish(f"{topic}/{i}", b"", retain=True)


@pytest.mark.config("limit received 32")
@spec("4.3.3-2")
def test_one_id_too_many_ends_the_connection_and_loses_no_other(mqtt, topic):
    """In 5.0 Receive Maximum says how many there may be."""
    witness, publisher = mqtt.reader(topic), mqtt.connect("pub", clean=False)
    for i in range(1, 33):
        publisher.send(codec.publish(topic, b"%d" % i, 2, i))
        publisher.expect(Ack(codec.PUBREC, i))
    publisher.send(codec.publish(topic, b"33", 2, 33))
    publisher.expect_closed()
    publisher = mqtt.connect("pub", clean=False)
    for i in range(1, 33):
        publisher.send(codec.publish(topic, b"%d" % i, 2, i, dup=True))
        publisher.expect(Ack(codec.PUBREC, i))
        publisher.release(i)
    publisher.publish(topic, b"again", 2)
    found = [m.payload for m in witness.publishes()]
    assert found == [*(b"%d" % i for i in range(1, 33)), b"again"]


@each_version()
class TestMessages:
    @staticmethod
    def queued(mqtt, topic, count):
        """A publisher, and so many messages for a client that is away."""
        mqtt.reader(topic, name="sub", qos=1, clean=False).disconnect()
        publisher = mqtt.connect("pub")
        for i in range(count):
            publisher.send(mqtt.codec.publish(topic, b"%d" % i, 1, i + 1))
            publisher.next()
        return publisher

    @staticmethod
    def waiting(mqtt):
        client = mqtt.connect("sub", clean=False)
        found = [m.payload for m in client.receive_all()]
        client.disconnect()
        return found

    def check(self, mqtt, topic, publisher, expected):
        """These are queued, and then there is space again."""
        assert self.waiting(mqtt) == [b"%d" % i for i in expected]
        publisher.publish(topic, b"room again", 2)
        assert self.waiting(mqtt) == [b"room again"]

    @configured(QUEUE, QUEUE + RELEASE, SHARES + "limit deliveries 6\nlimit inflight 6\n")
    def test_the_newest_message_is_dropped_and_its_id_is_free(self, mqtt, topic, config):
        publisher, full = self.queued(mqtt, topic, 10), 0 if mqtt.codec is codec else 0x97
        for qos in (1, 2, 1, 2) if config.startswith("limit messages") else ():
            assert code_of(publisher, topic, b"too many", qos) == full
        self.check(mqtt, topic, publisher, range(6))

    @configured(
        QUEUE + "when_full messages drop_oldest",
        SHARES + "limit deliveries 6\nlimit inflight 6\nwhen_full deliveries drop_oldest",
    )
    def test_with_drop_oldest_the_oldest_is_dropped(self, mqtt, topic, config):
        self.check(mqtt, topic, self.queued(mqtt, topic, 10), range(4, 10))

    @configured(*(f"{QUEUE}when_full messages disconnect\n{more}" for more in ("", RELEASE)))
    @QOS
    def test_with_disconnect_the_publisher_is_disconnected(self, mqtt, topic, config, qos):
        publisher = self.queued(mqtt, topic, 6)
        publisher.send(mqtt.codec.publish(topic, b"too many", qos, 99))
        publisher.expect_disconnect(0x97)
        self.check(mqtt, topic, mqtt.connect("pub"), range(6))

    @pytest.mark.config(QUEUE)
    def test_qos_0_needs_no_free_message(self, mqtt, topic):
        publisher, listener = self.queued(mqtt, topic, 6), mqtt.reader(f"{topic}/0")
        publisher.publish(f"{topic}/0", b"passes", 0)
        listener.receive(f"{topic}/0", b"passes")

    @pytest.mark.config(QUEUE)
    def test_a_retained_message_can_be_cleared_if_nobody_gets_that(self, mqtt, topic):
        """In 3.1.1 always, since the publisher is not told; in 5.0 it gets 0x97 otherwise."""
        publisher = self.queued(mqtt, topic, 5)
        publisher.publish(f"{topic}/other", b"old", 1, retain=True)
        if mqtt.codec is codec:
            subscriber = mqtt.connect("sub", clean=False)
            subscriber.subscribe(f"{topic}/other", qos=0)
            assert len(subscriber.publishes()) == 6
            subscriber.disconnect()
        publisher.publish(f"{topic}/other", b"", 1, retain=True)
        assert mqtt.reader(f"{topic}/other").publishes() == []


@each_version(new="3.4.2-1 3.5.2-1")
@QOS
@configured("message_size_limit 100", f"message_size_limit 100\n{RELEASE}"
            "when_full messages disconnect")  # fmt: skip
@pytest.mark.ours("mosquitto says 0x95, which PUBACK and PUBREC do not have")
def test_a_payload_over_the_limit_is_acknowledged_and_not_delivered(mqtt, topic, config, qos):
    """message_size_limit is a quota; PUBACK has no code "packet too large"."""
    subscriber, publisher = mqtt.reader(topic, qos=2), mqtt.connect()
    for size in (101, 5000):
        code = code_of(publisher, topic, b"x" * size, qos)
        assert code == (0 if mqtt.codec is codec else 0x97)
    properties = {} if mqtt.codec is codec else {"content_type": "does not count"}
    publisher.publish(topic, b"y" * 100, qos, **properties)
    subscriber.receive(topic, b"y" * 100, qos, **properties)
    publisher.publish(topic, b"x" * 101, 0)
    subscriber.expect_silence()


@pytest.mark.config("limit client_id_bytes 30")
@each_version("3.1.3-9")
def test_a_client_id_that_is_too_long_is_refused(mqtt):
    assert mqtt.socket().connect(mqtt.codec.connect("i" * 30)).code == 0
    mqtt.socket().expect_refused(mqtt.codec.connect("i" * 31), 2, 0x85)


@pytest.mark.config("limit messages 1")
@each_version()
def test_a_will_without_a_free_message_is_refused(mqtt, topic):
    mqtt.connect("first", will=Will(topic))
    refused(mqtt, 3, 0x88, name="second", will=Will(topic))
    mqtt.connect("third")
