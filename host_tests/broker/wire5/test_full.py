"""Full tables and messages that are too large, in MQTT 5.0."""

import pytest

from . import codec
from .codec import PUBACK, PUBREC, Ack, Will

QUOTA = 0x97
QOS = pytest.mark.parametrize("qos", [1, 2])
LIMIT = "message_size_limit 100\n"
SHARES = "max_session_share 100\nmax_offline_share 100\n"
QUEUE = f"limit messages 6\nlimit deliveries 100\n{SHARES}"
RELEASE = "qos2_delivery release\n"


def answered(client, topic, payload, qos, *codes, packet_id=77):
    """Publish, and get an acknowledgement with one of these codes."""
    client.send(codec.publish(topic, payload, qos, packet_id))
    answer = client.next()
    assert isinstance(answer, Ack), answer
    assert (answer.kind, answer.packet_id) == (PUBACK if qos == 1 else PUBREC, packet_id)
    assert answer.code in codes, f"{answer.code:#x}"


class TestSize:
    """message_size_limit is a quota; PUBACK has no code "packet too large"."""

    def check(self, mqtt5, topic, qos):
        subscriber, publisher = mqtt5.connect(), mqtt5.connect()
        subscriber.subscribe(topic, qos=2)
        for size in (101, 5000):
            answered(publisher, topic, b"x" * size, qos, QUOTA)
        publisher.publish(topic, b"y" * 100, qos, content_type="does not count")
        subscriber.receive(topic, b"y" * 100, qos, content_type="does not count")
        publisher.publish(topic, b"x" * 101, 0)
        subscriber.expect_silence()

    @pytest.mark.config(LIMIT)
    @pytest.mark.ours("mosquitto says 0x95, which PUBACK and PUBREC do not have")
    @pytest.mark.spec("MQTT-3.4.2-1", "MQTT-3.5.2-1", of="5.0")
    @QOS
    def test_a_payload_over_the_limit_has_0x97_and_is_not_delivered(self, mqtt5, topic, qos):
        self.check(mqtt5, topic, qos)

    @pytest.mark.ours("a key of our own")
    @pytest.mark.config(LIMIT + RELEASE + "when_full messages disconnect")
    @QOS
    def test_it_does_not_end_the_connection(self, mqtt5, topic, qos):
        self.check(mqtt5, topic, qos)


@pytest.mark.own_broker
@pytest.mark.ours("mosquitto's tables grow")
class TestMessages:
    def fill(self, mqtt5, topic):
        """Six queued messages, which fill the table."""
        away = mqtt5.connect("away", session_expiry=60)
        away.subscribe(topic, qos=1)
        away.disconnect()
        publisher = mqtt5.connect("pub")
        for n in range(6):
            publisher.publish(topic, b"%d" % n, 1)
        return publisher

    def check_free_again(self, mqtt5, topic, publisher):
        away = mqtt5.connect("away", clean=False)
        assert [m.payload for m in away.receive_all()] == [b"%d" % n for n in range(6)]
        away.ping()  # the acknowledgements have been read
        publisher.publish(topic, b"room again", 2)
        away.receive(topic, b"room again", 1)

    @pytest.mark.parametrize(
        "config", [pytest.param(text, marks=pytest.mark.config(text)) for text in
                   (QUEUE, QUEUE + RELEASE)],
    )  # fmt: skip
    def test_the_newest_message_has_0x97_and_its_id_is_free(self, mqtt5, topic, config):
        publisher = self.fill(mqtt5, topic)
        for qos in (1, 2, 1, 2):
            answered(publisher, topic, b"too many", qos, QUOTA)
        self.check_free_again(mqtt5, topic, publisher)

    @pytest.mark.parametrize(
        "config", [pytest.param(text, marks=pytest.mark.config(text + QUEUE)) for text in
                   ("when_full messages disconnect\n",
                    "when_full messages disconnect\n" + RELEASE)],
    )  # fmt: skip
    @QOS
    def test_with_disconnect_the_publisher_is_disconnected(self, mqtt5, topic, config, qos):
        publisher = self.fill(mqtt5, topic)
        publisher.send(codec.publish(topic, b"too many", qos, 7))
        publisher.expect_disconnect(QUOTA)
        self.check_free_again(mqtt5, topic, mqtt5.connect("pub"))


SMALL = "limit topic_bytes 100\nlimit levels 5\nlimit tx_bytes 640\nlimit shares 0\n"


@pytest.mark.config(SMALL)
@pytest.mark.ours("mosquitto's tables grow")
class TestSubscribing:
    @pytest.mark.spec("MQTT-3.9.3-1", "MQTT-3.9.3-2", of="5.0")
    def test_a_filter_that_is_too_long_or_too_deep_has_0x8f(self, mqtt5, topic):
        client = mqtt5.connect()
        long = f"{topic}/" + "x" * 100
        wanted = [long[:101], long[:100], "a/b/c/d/e", "a/b/c/d/e/f", f"{topic}/#"]
        assert client.request(*((name, 1) for name in wanted)) == (0x8F, 1, 1, 0x8F, 1)
        assert client.withdraw(*wanted) == (0x11, 0, 0, 0x11, 0)

    @pytest.mark.spec("MQTT-3.2.2-17", "MQTT-3.9.3-1", of="5.0")
    def test_without_shares_a_shared_filter_has_0x9e(self, mqtt5, topic):
        client = mqtt5.connect()
        assert client.connack.properties["shared_available"] == 0
        wanted = ((f"$share/g/{topic}", 1), (f"{topic}/a", 1))
        assert client.request(*wanted) == (0x9E, 1)
        assert client.withdraw(*(name for name, _ in wanted)) == (0x11, 0)

    def test_an_answer_larger_than_the_outgoing_buffer_ends_the_connection(self, mqtt5, topic):
        """No filter of it is subscribed, and none unsubscribed."""
        filters = [f"{topic}/{i}" for i in range(640)]
        for packet in (
            codec.subscribe(9, *((name, 1) for name in filters)),
            codec.unsubscribe(9, *filters),
        ):
            client = mqtt5.connect("me", session_expiry=60)
            client.subscribe(filters[0], qos=1)
            client.send(packet)
            client.expect_disconnect(QUOTA)
            client = mqtt5.connect("me", clean=False)
            client.publish(filters[0], b"still", 1)
            client.publish(filters[1], b"never", 1)
            assert [m.payload for m in client.receive_all()] == [b"still"]

    def test_the_largest_answer_that_fits_is_sent(self, mqtt5, topic):
        client = mqtt5.connect()
        filters = [f"{topic}/{i}" for i in range(640 - 5 - 1)]
        assert client.request(*((name, 1) for name in filters)) == (1,) * 634
        assert client.withdraw(*filters) == (0,) * 634


@pytest.mark.config(SMALL)
@pytest.mark.ours("mosquitto's topics have no limit")
@pytest.mark.spec("MQTT-3.1.4-1", of="5.0")
def test_a_will_topic_that_is_too_long_is_refused(mqtt5, topic):
    name = (f"{topic}/" + "x" * 200)[:101]
    mqtt5.refuse(0x90, will=Will(name))
    witness = mqtt5.connect()
    witness.subscribe(name[:100])
    mqtt5.connect(will=Will(name[:100])).drop()
    witness.receive(name[:100], b"gone")
    client = mqtt5.connect()
    client.send(codec.publish(name))
    client.expect_disconnect(0x90)
