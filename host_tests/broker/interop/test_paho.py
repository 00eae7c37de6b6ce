"""paho-mqtt, the client of most Python programs, with MQTT 3.1 and 3.1.1.

MQTT 5.0 is in test_scenario5.py, except for what that scenario does not have.
"""

from collections.abc import Iterator

import pytest
from paho.mqtt.enums import MQTTProtocolVersion

from ..wire.process import BrokerProcess
from .paho_client import V5, V31, V311, Paho, Received, Start, clients

LARGE = bytes(range(256)) * 80  # 20 KB
BURST = 200  # ten times what paho has in flight
ALL = pytest.mark.parametrize("level", [V31, V311, V5], ids=["v31", "v311", "v5"])


@pytest.fixture(params=[V31, V311], ids=["v31", "v311"])
def level(request: pytest.FixtureRequest) -> MQTTProtocolVersion:
    return MQTTProtocolVersion(request.param)


@pytest.fixture
def start(broker: BrokerProcess, level: MQTTProtocolVersion) -> Iterator[Start]:
    with clients(broker.address, level) as starts:
        yield starts


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_small_and_large_messages_arrive_in_every_qos(start: Start, base: str, qos: int):
    reader, writer = start(f"{base}r"), start(f"{base}w")
    assert reader.subscribe((f"{base}/+/x", qos), (f"{base}/deep/#", 2)) == [qos, 2]
    for topic, payload in (("a/x", b"one"), ("b/x", LARGE), ("a/y", b"no"), ("deep/a/b", b"")):
        writer.publish(f"{base}/{topic}", payload, qos)
    assert reader.receive() == Received(f"{base}/a/x", b"one", qos, False)
    assert reader.receive() == Received(f"{base}/b/x", LARGE, qos, False)
    assert reader.receive() == Received(f"{base}/deep/a/b", b"", qos, False)


@ALL
@pytest.mark.parametrize("qos", [1, 2])
def test_a_burst_arrives_whole_and_in_order(start: Start, base: str, qos: int):
    reader, writer = start(f"{base}r"), start(f"{base}w")
    reader.subscribe((f"{base}/#", 2))
    sent = [b"%d" % number for number in range(BURST)]
    for payload in sent:
        writer.client.publish(f"{base}/n", payload, qos)
    assert [reader.receive().payload for _ in sent] == sent


def test_a_later_subscriber_gets_a_retained_message(start: Start, base: str):
    writer = start(f"{base}w")
    writer.publish(f"{base}/old", LARGE, 1, retain=True)
    writer.publish(f"{base}/gone", b"never seen", 1, retain=True)
    writer.publish(f"{base}/gone", b"", 1, retain=True)
    reader = start(f"{base}r")
    reader.subscribe((f"{base}/+", 1))
    writer.publish(f"{base}/new", b"live", 1, retain=True)
    assert reader.receive() == Received(f"{base}/old", LARGE, 1, True)
    assert reader.receive() == Received(f"{base}/new", b"live", 1, False)
    for topic in ("old", "new"):
        writer.publish(f"{base}/{topic}", b"", 1, retain=True)


@ALL
def test_an_unsubscribed_filter_brings_no_messages(start: Start, base: str):
    client = start(base)
    client.subscribe((f"{base}/a", 1), (f"{base}/b", 1))
    client.unsubscribe(f"{base}/a")
    client.publish(f"{base}/a", b"no", 1)
    client.publish(f"{base}/b", b"yes", 1)
    assert client.receive().payload == b"yes"


def test_the_will_of_a_killed_client_arrives(start: Start, base: str):
    reader = start(f"{base}r")
    reader.subscribe((f"{base}/will/#", 2))
    start(f"{base}a", will=(f"{base}/will/a", b"left in order", 1)).leave()
    start(f"{base}b", will=(f"{base}/will/b", b"killed", 2)).kill()
    assert reader.receive() == Received(f"{base}/will/b", b"killed", 2, False)


def test_messages_are_queued_for_a_client_that_is_away(
    start: Start, base: str, level: MQTTProtocolVersion
):
    away = start(f"{base}r", clean=False)
    assert not away.present
    away.subscribe((f"{base}/#", 2))
    away.leave()
    writer = start(f"{base}w")
    for qos, payload in ((1, b"first"), (2, LARGE)):
        writer.publish(f"{base}/{qos}", payload, qos)
    back = start(f"{base}r", clean=False)
    assert back.present is (level != V31)  # 3.1 has no bit for it
    assert back.receive() == Received(f"{base}/1", b"first", 1, False)
    assert back.receive() == Received(f"{base}/2", LARGE, 2, False)
    back.leave()
    start(f"{base}r", clean=True).leave()
    assert not start(f"{base}r", clean=False).present
    start(f"{base}r", clean=True)  # removes the session of the line above


def test_a_second_client_with_the_same_id_takes_over(start: Start, base: str):
    first = start(base, clean=False)
    first.subscribe((f"{base}/#", 1))
    second = start(base, clean=False)
    first.expect_closed()
    second.publish(f"{base}/x", b"mine", 1)
    assert second.receive().payload == b"mine"
    start(base, clean=True)


@pytest.mark.config("mqtt_versions 3")
@pytest.mark.ours("the peer speaks version 5")
def test_version_5_is_refused_with_a_reason(broker: BrokerProcess, base: str):
    client = Paho(base, V5)
    answer, _ = client.connect(broker.address)
    client.expect_closed()
    client.leave()
    assert answer == "Unsupported protocol version"
