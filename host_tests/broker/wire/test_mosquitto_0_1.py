"""mosquitto 0.1 (MQTT 3.1): a recorded dialogue byte by byte, and a recorded scenario."""

import pytest

from . import codec
from .codec import Ack, Will
from .vectors import wire

# (sent, answered)
DIALOGUE = [
    ("10 [ 'MQIsdp' 03 02 003c 'mosquitto_pub_4247' ]", "20 02 00 00"),
    ("82 08 00 01 00 03 6d 73 67 00", "90 03 00 01 00"),
    ("30 0b 00 03 6d 73 67 71 30 5f 6d 73 67", "30 0b 00 03 6d 73 67 71 30 5f 6d 73 67"),
    ("c0 00", "d0 00"),
    ("a2 07 00 02 00 03 6d 73 67", "b0 02 00 02"),
    ("32 0d 00 03 6d 73 67 00 01 71 31 5f 6d 73 67", "40 02 00 01"),
    ("34 0d 00 03 6d 73 67 00 01 71 32 5f 6d 73 67", "50 02 00 01"),
    ("62 02 00 01", "70 02 00 01"),
    ("e0 00", ""),
]
SCENARIO_TOPIC = "msg"
WILL_SUB01 = b"this is a will-retain qos=2 msg from sub01"
FROM_PUB01 = b"this is qos=2 topic=msg from pub01"


@pytest.mark.own_broker
def test_each_byte_of_the_dialogue(mqtt):
    client = mqtt.socket()
    for sent, answered in DIALOGUE:
        client.send(wire(sent))
        assert client.read_bytes(len(wire(answered))) == wire(answered)
    client.expect_closed()


def test_the_codec_writes_the_bytes_of_the_dialogue():
    packets = [
        codec.connect("mosquitto_pub_4247", keep_alive=60, level=3),
        codec.subscribe(1, ("msg", 0)),
        codec.publish("msg", b"q0_msg"),
        codec.PINGREQ,
        codec.unsubscribe(2, "msg"),
        codec.publish("msg", b"q1_msg", 1, 1),
        codec.publish("msg", b"q2_msg", 2, 1),
        codec.ack(codec.PUBREL, 1),
        codec.DISCONNECT,
    ]
    assert packets == [wire(sent) for sent, _ in DIALOGUE]


def will(text):
    return Will(SCENARIO_TOPIC, text, 2, retain=True)


def pub01_publishes(mqtt, sub01):
    """pub01 publishes retained with QoS 2, sub01 receives, pub01 disconnects."""
    pub01 = mqtt.connect("pub01", level=3, will=will(b"never"))
    pub01.publish(SCENARIO_TOPIC, FROM_PUB01, 2, retain=True)
    pub01.disconnect()
    sub01.receive(SCENARIO_TOPIC, FROM_PUB01, 2)


class Scenario:
    @pytest.mark.own_broker
    @pytest.mark.spec("MQTT-3.1.2-17", "MQTT-3.1.2-10", "MQTT-3.3.1-8")
    def test_a_retained_message_and_a_retained_will(self, mqtt):
        sub01 = mqtt.connect("sub01", level=3, will=will(WILL_SUB01))
        sub01.subscribe(SCENARIO_TOPIC, qos=2)
        pub01_publishes(mqtt, sub01)
        sub02 = mqtt.connect("sub02", level=3)
        sub02.subscribe(SCENARIO_TOPIC, qos=2)
        sub02.receive(SCENARIO_TOPIC, FROM_PUB01, 2, retain=True)
        sub01.drop()
        sub02.receive(SCENARIO_TOPIC, WILL_SUB01, 2)
        late = mqtt.connect("late", level=3)
        late.subscribe(SCENARIO_TOPIC, qos=2)
        late.receive(SCENARIO_TOPIC, WILL_SUB01, 2, retain=True)
        late.expect_silence()
        sub02.expect_silence()


@pytest.mark.config("qos2_delivery receive")
@pytest.mark.ours("mosquitto knows only the other method")
class TestDeliveryWhenReceived(Scenario):
    pass


@pytest.mark.config("qos2_delivery release")
class TestDeliveryWhenReleased(Scenario):
    @pytest.mark.own_broker
    def test_the_subscriber_receives_after_pubrel(self, mqtt):
        """pub01 has disconnected before sub01 gets its own PUBREL."""
        sub01, pub01 = mqtt.connect("sub01", level=3), mqtt.connect("pub01", level=3)
        sub01.subscribe(SCENARIO_TOPIC, qos=2)
        pub01.send(codec.publish(SCENARIO_TOPIC, FROM_PUB01, 2, 1, retain=True))
        pub01.expect(Ack(codec.PUBREC, 1))
        sub01.expect_silence()
        pub01.release(1)
        message = sub01.expect_publish(SCENARIO_TOPIC, FROM_PUB01, 2)
        pub01.disconnect()
        sub01.acknowledge(message)
        sub01.expect_silence()
