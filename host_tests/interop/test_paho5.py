"""paho-mqtt with what MQTT 5.0 has more: properties, options, reasons."""

from collections.abc import Iterator
from itertools import chain
from typing import Any

import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.subscribeoptions import SubscribeOptions

from ..wire.process import BrokerProcess
from .paho_client import PATIENCE_S, V5, Paho, Received, Start, clients, properties

GIVEN: dict[str, Any] = {
    "PayloadFormatIndicator": 1,
    "ContentType": "text/plain",
    "ResponseTopic": "answers/here",
    "CorrelationData": b"17",
    "UserProperty": [("b", "2"), ("a", "1"), ("b", "2")],
}


@pytest.fixture
def start(broker: BrokerProcess) -> Iterator[Start]:
    with clients(broker.address, V5) as starts:
        yield starts


def told(reader: Paho) -> dict[str, Any]:
    """The properties of the message that came last, by paho's names."""
    found = reader.last_properties
    return {name: getattr(found, name) for name in GIVEN if hasattr(found, name)}


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_properties_go_with_a_message(start: Start, base: str, qos: int):
    reader, writer = start(f"{base}r"), start(f"{base}w")
    reader.subscribe((f"{base}/#", qos))
    for given in (GIVEN, {}, GIVEN):
        done = writer.client.publish(
            f"{base}/x", b"hi", qos, properties=properties(PacketTypes.PUBLISH, **given)
        )
        done.wait_for_publish(PATIENCE_S)
        assert reader.receive() == Received(f"{base}/x", b"hi", qos, False)
        assert told(reader) == given


def test_properties_go_with_a_will_and_with_a_retained_message(start: Start, base: str):
    reader = start(f"{base}r")
    reader.subscribe((f"{base}/#", 1))
    mortal = Paho(f"{base}m", V5)
    will = properties(PacketTypes.WILLMESSAGE, **GIVEN)
    mortal.client.will_set(f"{base}/will", b"gone", 1, True, will)
    mortal.connect(reader.address)
    mortal.kill()
    assert reader.receive() == Received(f"{base}/will", b"gone", 1, False)
    assert told(reader) == GIVEN
    late = start(f"{base}l")
    late.subscribe((f"{base}/will", 1))
    assert late.receive() == Received(f"{base}/will", b"gone", 1, True)
    assert told(late) == GIVEN
    late.publish(f"{base}/will", b"", 1, True)


def test_options_of_a_subscription(start: Start, base: str):
    client, writer = start(f"{base}c"), start(f"{base}w")
    writer.publish(f"{base}/x", b"kept", 1, True)
    options = SubscribeOptions(1, noLocal=True, retainAsPublished=True, retainHandling=2)
    assert client.subscribe((f"{base}/+", options)) == [1]
    client.publish(f"{base}/mine", b"not for me", 1)
    writer.publish(f"{base}/x", b"", 1, True)
    assert client.receive() == Received(f"{base}/x", b"", 1, True)


def until_the_end(reader: Paho) -> list[bytes]:
    """The payloads that came before the last one."""
    found = [reader.receive().payload]
    while found[-1] != b"end":
        found.append(reader.receive().payload)
    return found[:-1]


def test_a_group_shares_its_messages(start: Start, base: str):
    members = [start(f"{base}{i}") for i in range(2)]
    for member in members:
        member.subscribe((f"$share/group/{base}/x", 1), (f"{base}/end", 1))
    writer = start(f"{base}w")
    payloads = [b"%d" % i for i in range(10)]
    for payload in payloads:
        writer.publish(f"{base}/x", payload, 1)
    writer.publish(f"{base}/end", b"end", 1)
    assert sorted(chain(*map(until_the_end, members))) == payloads


def test_a_second_client_of_the_same_name_takes_over_with_a_reason(start: Start, base: str):
    first = start(base)
    start(base)
    first.expect_closed()
    assert first.reason == "Session taken over"
