"""Full tables: the client that exceeds one is refused, and the others are served."""

import pytest

from . import codec
from .codec import Ack, Connack, Publish

pytestmark = pytest.mark.ours("mosquitto's tables grow")


def refused(mqtt, name="", code=3, **options):
    """A client that is refused with this code."""
    mqtt.socket().expect_refused(mqtt.packet(name, **options), code)


def enqueue(subscriber, publisher, topic, count):
    """Queue `count` messages for a subscriber that is away."""
    subscriber.disconnect()
    for i in range(count):
        publisher.publish(topic, b"%d" % i, 1)


@pytest.mark.own_broker
@pytest.mark.config("max_connections 2")
class TestConnections:
    def test_one_client_too_many_is_refused_with_code_3(self, mqtt):
        first, second = mqtt.connect("first"), mqtt.connect("second")
        for _ in range(3):
            refused(mqtt)
        first.disconnect()
        third = mqtt.connect("third")
        for client in (second, third):
            client.expect_silence()

    def test_a_takeover_needs_no_free_connection(self, mqtt):
        first, second = mqtt.connect("first"), mqtt.connect("second")
        again = mqtt.connect("first")
        first.expect_closed()
        for client in (again, second):
            client.expect_silence()


@pytest.mark.own_broker
@pytest.mark.config("limit connections 2")
def test_sockets_beyond_the_table_wait_and_are_served_in_turn(mqtt, topic):
    first, second = mqtt.connect("first"), mqtt.connect("second")
    crowd = [mqtt.socket() for _ in range(4)]
    first.publish(topic, b"x", 1)
    for client in crowd:
        client.send(mqtt.packet())
    for client in crowd:
        assert client.next() == Connack(False, 3)
        client.expect_closed()
    second.publish(topic, b"x", 1)


@pytest.mark.own_broker
class TestSessions:
    @pytest.mark.config("limit sessions 3\nlimit connections 3\nwhen_full sessions refuse")
    def test_one_session_too_many_is_refused_with_code_3(self, mqtt):
        kept = [mqtt.connect(f"kept{i}", clean=False) for i in range(3)]
        kept[0].disconnect()
        refused(mqtt)
        refused(mqtt, clean=False)
        kept[1].expect_silence()
        assert mqtt.connect("kept0", clean=True).connack == Connack(False, 0)

    @pytest.mark.config("limit sessions 3\nlimit connections 3\nwhen_full sessions drop_oldest")
    def test_with_drop_oldest_the_session_that_left_first_is_dropped(self, mqtt, topic):
        for i in range(3):
            kept = mqtt.connect(f"kept{i}", clean=False)
            kept.subscribe(topic)
            kept.disconnect()
        mqtt.connect("new").disconnect()
        assert mqtt.connect("kept2", clean=False).connack == Connack(True, 0)
        assert mqtt.connect("kept1", clean=False).connack == Connack(True, 0)
        assert mqtt.connect("kept0", clean=False).connack == Connack(False, 0)

    @pytest.mark.config("limit sessions 2\nlimit connections 2\nwhen_full sessions drop_oldest")
    def test_with_drop_oldest_no_connected_session_is_dropped(self, mqtt):
        clients = [mqtt.connect(f"here{i}", clean=False) for i in range(2)]
        refused(mqtt)
        for client in clients:
            client.expect_silence()


@pytest.mark.own_broker
class TestSubscriptions:
    @pytest.mark.config("limit subscriptions 3")
    def test_one_subscription_too_many_is_answered_with_0x80(self, mqtt, topic):
        client = mqtt.connect()
        wanted = [(f"{topic}/{i}", 1) for i in range(5)]
        assert client.request(*wanted) == (1, 1, 1, 0x80, 0x80)
        assert client.request((f"{topic}/1", 2)) == (2,)
        client.publish(f"{topic}/4", b"x", 1)
        client.expect_silence()
        client.unsubscribe(f"{topic}/0")
        assert client.request((f"{topic}/4", 1)) == (1,)
        client.publish(f"{topic}/4", b"x", 1)
        client.receive(f"{topic}/4", b"x", 1)

    @pytest.mark.config("limit nodes 4")
    def test_a_filter_without_free_nodes_is_answered_with_0x80(self, mqtt):
        client = mqtt.connect()
        assert client.request(("a/b", 1), ("a/c/d/e", 1), ("a/c", 1), ("x/y", 0)) == (
            1,
            0x80,
            1,
            0x80,
        )
        client.unsubscribe("a/b", "a/c")
        assert client.request(("x/y/z/#", 2)) == (2,)

    @pytest.mark.config("limit levels 4")
    def test_a_filter_with_too_many_levels_is_answered_with_0x80(self, mqtt):
        client = mqtt.connect()
        assert client.request(("a/b/c/d", 1), ("a/b/c/d/e", 1), ("+/+/+/#", 0)) == (1, 0x80, 0)
        client.publish("a/b/c/d/e", b"deep topics are legal", 1)
        client.receive("a/b/c/d/e", b"deep topics are legal", 0)

    @pytest.mark.config("limit topic_bytes 40")
    def test_a_filter_that_is_too_long_is_answered_with_0x80(self, mqtt):
        client = mqtt.connect()
        assert client.request(("a" * 40, 1), ("a" * 41, 1)) == (1, 0x80)
        client.publish("a" * 40, b"x", 1)
        client.receive("a" * 40, b"x", 1)
        client.send(codec.publish("a" * 41, b"x", 1, 9))
        client.expect_closed()


@pytest.mark.own_broker
class TestRetained:
    @staticmethod
    def kept(mqtt):
        reader = mqtt.connect()
        reader.subscribe("r/+")
        return {m.topic: m.payload for m in reader.publishes()}

    @staticmethod
    def fill(mqtt, count):
        publisher = mqtt.connect()
        for i in range(count):
            publisher.publish(f"r/{i}", b"%d" % i, 1, retain=True)
        return publisher

    @pytest.mark.config("limit retained 3")
    def test_one_retained_message_too_many_is_passed_on_but_not_stored(self, mqtt):
        listener = mqtt.connect()
        listener.subscribe("r/+")
        publisher = self.fill(mqtt, 5)
        assert [m.topic for m in listener.publishes()] == [f"r/{i}" for i in range(5)]
        assert self.kept(mqtt) == {f"r/{i}": b"%d" % i for i in range(3)}
        publisher.publish("r/1", b"replaced", retain=True)
        publisher.publish("r/0", b"", retain=True)
        publisher.publish("r/4", b"fits now", retain=True)
        assert self.kept(mqtt) == {"r/1": b"replaced", "r/2": b"2", "r/4": b"fits now"}


class TestReceived:
    @pytest.mark.own_broker
    @pytest.mark.config("limit received 32")
    @pytest.mark.spec("MQTT-4.3.3-2")
    def test_one_id_too_many_ends_the_connection_and_loses_no_other(self, mqtt, topic):
        witness = mqtt.connect("witness")
        witness.subscribe(topic)
        publisher = mqtt.connect("pub", clean=False)
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


SHARES = "max_session_share 100\nmax_offline_share 100\n"
QUEUE = f"limit messages 6\nlimit deliveries 100\n{SHARES}"


@pytest.mark.own_broker
class TestMessages:
    @staticmethod
    def queued(mqtt, topic, count):
        subscriber, publisher = mqtt.connect("sub", clean=False), mqtt.connect("pub")
        subscriber.subscribe(topic, qos=1)
        enqueue(subscriber, publisher, topic, count)
        return publisher

    @staticmethod
    def waiting(mqtt):
        return [m.payload for m in mqtt.connect("sub", clean=False).receive_all()]

    @pytest.mark.config(QUEUE)
    def test_the_newest_message_is_acknowledged_and_dropped(self, mqtt, topic):
        publisher = self.queued(mqtt, topic, 10)
        assert self.waiting(mqtt) == [b"%d" % i for i in range(6)]
        publisher.publish(topic, b"room again", 1)
        assert self.waiting(mqtt) == [b"room again"]

    @pytest.mark.config(QUEUE)
    def test_a_retained_message_can_still_be_cleared(self, mqtt, topic):
        publisher = self.queued(mqtt, topic, 5)
        publisher.publish("other", b"old", 1, retain=True)
        subscriber = mqtt.connect("sub", clean=False)
        subscriber.subscribe("other", qos=0)
        assert len(subscriber.publishes()) == 6
        subscriber.disconnect()
        publisher.publish("other", b"", 1, retain=True)
        listener = mqtt.connect()
        listener.subscribe("other")
        assert listener.publishes() == []

    @pytest.mark.config(QUEUE + "when_full messages drop_oldest")
    def test_with_drop_oldest_the_oldest_message_is_dropped(self, mqtt, topic):
        self.queued(mqtt, topic, 10)
        assert self.waiting(mqtt) == [b"%d" % i for i in range(4, 10)]

    @pytest.mark.config(QUEUE + "when_full messages disconnect")
    def test_with_disconnect_the_publisher_is_disconnected(self, mqtt, topic):
        publisher = self.queued(mqtt, topic, 6)
        publisher.send(codec.publish(topic, b"too many", 1, 99))
        publisher.expect_closed()
        assert self.waiting(mqtt) == [b"%d" % i for i in range(6)]
        mqtt.connect("pub").publish(topic, b"room again", 1)

    @pytest.mark.config(SHARES + "limit messages 100\nlimit deliveries 6\nlimit inflight 6")
    def test_a_full_table_of_deliveries_drops_the_newest(self, mqtt, topic):
        self.queued(mqtt, topic, 10)
        assert self.waiting(mqtt) == [b"%d" % i for i in range(6)]

    @pytest.mark.config(
        SHARES + "limit deliveries 6\nlimit inflight 6\nwhen_full deliveries drop_oldest"
    )
    def test_with_drop_oldest_it_drops_the_oldest_delivery(self, mqtt, topic):
        self.queued(mqtt, topic, 10)
        assert self.waiting(mqtt) == [b"%d" % i for i in range(4, 10)]

    @pytest.mark.config(QUEUE)
    def test_qos_0_needs_no_free_message(self, mqtt, topic):
        publisher = self.queued(mqtt, topic, 6)
        listener = mqtt.connect()
        listener.subscribe(f"{topic}/0")
        publisher.publish(f"{topic}/0", b"passes", 0)
        assert listener.next() == Publish(f"{topic}/0", b"passes")


@pytest.mark.own_broker
@pytest.mark.config("limit client_id_bytes 30")
@pytest.mark.spec("MQTT-3.1.3-9")
def test_a_client_id_that_is_too_long_is_refused_with_code_2(mqtt):
    client = mqtt.socket()
    assert client.connect(codec.connect("i" * 30)) == Connack(False, 0)
    mqtt.socket().expect_refused(codec.connect("i" * 31), 2)


@pytest.mark.own_broker
@pytest.mark.config("limit messages 1")
def test_a_will_without_a_free_message_is_refused_with_code_3(mqtt, topic):
    mqtt.connect("first", will=codec.Will(topic))
    refused(mqtt, "second", will=codec.Will(topic))
    mqtt.connect("third")
