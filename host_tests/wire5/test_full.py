"""What a publisher of MQTT 5.0 is told where there is no room, or too much of a message."""

import pytest

from . import codec
from .codec import PUBACK, PUBREC, Ack

QUOTA = 0x97
QOS = pytest.mark.parametrize("qos", [1, 2])
LIMIT = "message_size_limit 100\n"
QUEUE = "limit messages 6\nlimit deliveries 100\n"
RELEASE = "qos2_delivery release\n"


def answered(client, topic, payload, qos, *codes, packet_id=77):
    """Publish, and be answered by one of these codes; with an error the id is free again."""
    client.send(codec.publish(topic, payload, qos, packet_id))
    answer = client.next()
    assert isinstance(answer, Ack), answer
    assert (answer.kind, answer.packet_id) == (PUBACK if qos == 1 else PUBREC, packet_id)
    assert answer.code in codes, f"{answer.code:#x}"


class TestSize:
    """A limit that the administrator has set is a quota; "too large" is no code of PUBACK."""

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
    def test_a_payload_over_the_limit_exceeds_a_quota_and_goes_nowhere(self, mqtt5, topic, qos):
        self.check(mqtt5, topic, qos)

    @pytest.mark.ours("a key of our own")
    @pytest.mark.config(LIMIT + RELEASE + "when_full messages disconnect")
    @QOS
    def test_and_never_ends_the_connection(self, mqtt5, topic, qos):
        self.check(mqtt5, topic, qos)


@pytest.mark.own_broker
@pytest.mark.ours("mosquitto's tables grow")
class TestMessages:
    def fill(self, mqtt5, topic):
        """Six messages that wait, which is all that there is room for."""
        away = mqtt5.connect("away", session_expiry=60)
        away.subscribe(topic, qos=1)
        away.disconnect()
        publisher = mqtt5.connect("pub")
        for n in range(6):
            publisher.publish(topic, b"%d" % n, 1)
        return publisher

    def check_room(self, mqtt5, topic, publisher):
        away = mqtt5.connect("away", clean=False)
        assert [m.payload for m in away.receive_all()] == [b"%d" % n for n in range(6)]
        away.ping()  # the acknowledgements have been read
        publisher.publish(topic, b"room again", 2)
        away.receive(topic, b"room again", 1)

    @pytest.mark.parametrize(
        "config", [pytest.param(text, marks=pytest.mark.config(text)) for text in
                   (QUEUE, QUEUE + RELEASE)],
    )  # fmt: skip
    def test_the_newest_is_refused_and_its_id_is_free(self, mqtt5, topic, config):
        publisher = self.fill(mqtt5, topic)
        for qos in (1, 2, 1, 2):
            answered(publisher, topic, b"too many", qos, QUOTA)
        self.check_room(mqtt5, topic, publisher)

    @pytest.mark.parametrize(
        "config", [pytest.param(text, marks=pytest.mark.config(text + QUEUE)) for text in
                   ("when_full messages disconnect\n",
                    "when_full messages disconnect\n" + RELEASE)],
    )  # fmt: skip
    @QOS
    def test_or_the_publisher_is_disconnected(self, mqtt5, topic, config, qos):
        publisher = self.fill(mqtt5, topic)
        publisher.send(codec.publish(topic, b"too many", qos, 7))
        publisher.expect_disconnect(QUOTA)
        self.check_room(mqtt5, topic, mqtt5.connect("pub"))
