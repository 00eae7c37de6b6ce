"""What a test sees of its broker: messages, packets, clients, tables."""

import asyncio
import time
import unittest
from collections.abc import Callable

import pytest

from host_tests.broker.wire import codec
from host_tests.broker.wire5 import client as client5
from host_tests.broker.wire5 import codec as codec5
from slotmq_tools.testing.mqtt import Message, Mqtt, NotRunning

from .conftest import connected


def test_a_message_is_seen_with_its_client(mqtt: Mqtt) -> None:
    sensor = connected(mqtt, "sensor-1")
    sensor.publish("room/1", b"21.5", 1, retain=True)
    assert mqtt.wait_for("room/+", "21.5") == Message("room/1", b"21.5", 1, True, "sensor-1")
    assert mqtt.retained == {"room/1": b"21.5"}
    assert mqtt.url == f"mqtt://127.0.0.1:{mqtt.port}"
    sensor.disconnect()


@pytest.mark.parametrize("payload", [b"7", "7", 7, lambda got: got > b"6"])
def test_a_payload_may_be_given_in_four_ways(mqtt: Mqtt, payload: object) -> None:
    mqtt.publish("count", "6")
    mqtt.publish("count", "7")
    assert mqtt.wait_for("count", payload).payload == b"7"  # type: ignore[arg-type]


def test_wait_for_counts(mqtt: Mqtt) -> None:
    for payload in "abc":
        mqtt.publish("letter", payload)
    assert mqtt.wait_for("letter", count=3).payload == b"c"
    mqtt.clear()
    assert mqtt.messages() == []


def test_a_failed_wait_shows_the_nearest_topics_and_the_last_packets(mqtt: Mqtt) -> None:
    sensor = connected(mqtt, "sensor-1")
    for topic in ("room/1/temperature", "room/2/temperature", "door"):
        sensor.publish(topic, b"21.5", 1)
    with pytest.raises(AssertionError) as failure:
        mqtt.wait_for("room/1/temprature", "21.5", timeout=0)
    said = str(failure.value)
    assert "no message room/1/temprature with '21.5' within 0 s" in said
    assert said.index("    room/1/temperature") < said.index("    room/2/temperature")
    assert "sensor-1 -> PUBLISH door 21.5 qos 1" in said
    assert "sensor-1 <- PUBACK" in said
    sensor.disconnect()


def test_a_failed_wait_shows_other_payloads(mqtt: Mqtt) -> None:
    mqtt.publish("lamp", "off")
    with pytest.raises(AssertionError, match="with other payloads:\n    lamp off"):
        mqtt.wait_for("lamp", "on", timeout=0)


def test_a_failed_wait_without_any_message(mqtt: Mqtt) -> None:
    with pytest.raises(AssertionError, match="no message was published at all"):
        mqtt.wait_for("lamp", timeout=0)


def test_a_failed_wait_counts_what_was_there(mqtt: Mqtt) -> None:
    mqtt.publish("lamp", "on")
    mqtt.publish("lamp", "off")
    with pytest.raises(AssertionError) as failure:
        mqtt.wait_for("lamp", "on", count=3, timeout=0)
    said = str(failure.value)
    assert said.startswith("only 1 of 3 messages lamp with 'on' within 0 s\n    lamp on\n")
    assert "with other payloads:\n    lamp off\nlast packets:" in said


@pytest.mark.parametrize("wrong", ["a/#/x", "#/", "a+", "a/b#", ""])
@pytest.mark.parametrize(
    "act",
    [
        lambda mqtt, name: mqtt.messages(name),
        lambda mqtt, name: mqtt.wait_for(name),
        lambda mqtt, name: asyncio.run(mqtt.wait_for_async(name)),
        lambda mqtt, name: mqtt.wait_for_subscription(name),
        lambda mqtt, name: mqtt.drop(name),
    ],
    ids=["messages", "wait_for", "wait_for_async", "wait_for_subscription", "drop"],
)
def test_a_filter_that_is_none_is_refused(
    mqtt: Mqtt, act: Callable[[Mqtt, str], object], wrong: str
) -> None:
    """[MQTT-4.7.1-2], [MQTT-4.7.1-3]"""
    with pytest.raises(ValueError, match=r"whole levels, # as the last one"):
        act(mqtt, wrong)


@pytest.mark.parametrize(
    ("named", "kind", "said"),
    [
        ({"count": 0}, ValueError, "count: expected at least 1, not 0"),
        ({"timeout": -1}, ValueError, "timeout: expected at least 0, not -1"),
        ({"timeout": "2s"}, TypeError, "timeout: expected a number, not '2s'"),
        ({"payload": [1]}, TypeError, r"payload: expected a str, bytes, a number or"),
    ],
)
def test_arguments_that_are_none_are_refused(
    mqtt: Mqtt, named: dict[str, object], kind: type[Exception], said: str
) -> None:
    for _ in range(2):  # also where there is nothing to compare
        with pytest.raises(kind, match=said):
            mqtt.wait_for("a", **named)  # type: ignore[arg-type]
        mqtt.publish("a", "b")


def test_what_the_test_publishes_is_among_the_packets(mqtt: Mqtt) -> None:
    def answer(_topic: str, payload: bytes, *_: object) -> None:
        mqtt.broker.publish("answer", payload)

    mqtt.broker.subscribe("question", answer)
    mqtt.publish("question", "42", qos=1, retain=True)
    mqtt.wait_for("answer")
    assert mqtt.packets[-2:] == [
        "the test -> PUBLISH question 42 qos 1 retain",
        "the program -> PUBLISH answer 42",
    ]


def test_a_number_is_published_as_its_text(mqtt: Mqtt) -> None:
    mqtt.publish("room/1", 21.5)
    assert mqtt.wait_for("room/1", 21.5).payload == b"21.5"


def test_a_subscription_is_among_the_packets_with_its_filters(mqtt: Mqtt) -> None:
    five = client5.Client((mqtt.host, mqtt.port))
    assert five.connect(codec5.connect("five")).code == 0
    five.subscribe("lamp/#", qos=2, subscription_id=7)
    five.withdraw("lamp/#", "door")
    for line in ("SUBSCRIBE lamp/# qos 2", "UNSUBSCRIBE lamp/#, door"):
        assert f"five -> {line}" in mqtt.packets
    five.disconnect()


def test_a_wait_for_a_subscription(mqtt: Mqtt) -> None:
    panel = connected(mqtt, "panel")
    with pytest.raises(AssertionError, match="no subscription to lamp/\\+ within 0 s; there are"):
        mqtt.wait_for_subscription("lamp/+", timeout=0)
    panel.subscribe("lamp/+", qos=1)
    assert mqtt.wait_for_subscription("lamp/+") == ("panel", "lamp/+", 1)
    with pytest.raises(AssertionError, match="of shelf within 0 s; there are:\n    panel: lamp/"):
        mqtt.wait_for_subscription("lamp/+", "shelf", timeout=0)
    panel.disconnect()


def test_a_wait_for_a_subscription_ends_when_it_comes(mqtt: Mqtt) -> None:
    async def program() -> tuple[str, str, int]:
        waiting = asyncio.create_task(mqtt.wait_for_subscription_async("lamp", timeout=60))
        await asyncio.sleep(0.01)
        panel = await asyncio.to_thread(connected, mqtt, "panel")
        await asyncio.to_thread(panel.subscribe, "lamp", qos=0)
        found = await waiting
        panel.disconnect()
        return found

    began = time.monotonic()
    assert asyncio.run(program()) == ("panel", "lamp", 0)
    assert time.monotonic() - began < 30


def test_a_wait_in_asyncio_can_be_cancelled(mqtt: Mqtt) -> None:
    async def program() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(mqtt.wait_for_async("never", timeout=60), 0.05)

    began = time.monotonic()
    asyncio.run(program())
    assert time.monotonic() - began < 30


def test_a_wait_in_asyncio_fails_as_the_other_does(mqtt: Mqtt) -> None:
    with pytest.raises(AssertionError, match=r"no message never within 0\.01 s"):
        asyncio.run(mqtt.wait_for_async("never", timeout=0.01))


def test_a_wait_that_stops_the_event_loop_says_so() -> None:
    async def program() -> None:
        async with Mqtt() as mqtt:
            with pytest.raises(AssertionError, match=r"await wait_for_async\(\)"):
                mqtt.wait_for("never", timeout=0)
            with pytest.raises(AssertionError, match=r"within 0 s\n(?!.*await)"):
                await mqtt.wait_for_async("never", timeout=0)

    asyncio.run(program())


def test_a_wait_says_at_once_that_the_broker_has_failed(mqtt: Mqtt) -> None:
    began = time.monotonic()
    mqtt.broker.subscribe("bad", lambda *_: 1 / 0)
    mqtt.publish("bad")
    with pytest.raises(NotRunning, match="ZeroDivisionError"):
        mqtt.wait_for("never", timeout=60)
    assert time.monotonic() - began < 30


def test_a_wait_after_a_power_cut_says_so(mqtt: Mqtt) -> None:
    mqtt.publish("a")
    mqtt.power_cut()
    assert mqtt.wait_for("a")
    with pytest.raises(NotRunning, match=r"restart\(\) starts it"):
        mqtt.wait_for("never", timeout=0)


def test_wait_for_in_asyncio(mqtt: Mqtt) -> None:
    async def program() -> Message:
        waiting = asyncio.create_task(mqtt.wait_for_async("late"))
        await asyncio.sleep(0)
        mqtt.publish("late", "1")
        return await waiting

    assert asyncio.run(program()).payload == b"1"


def test_clients_and_subscriptions(mqtt: Mqtt) -> None:
    panel = connected(mqtt, "panel", clean=False)
    panel.subscribe("lamp/+", qos=1)
    (one,) = mqtt.clients
    assert (one.id, one.is_connected, one.version) == ("panel", True, "3.1.1")
    assert mqtt.subscriptions == [("panel", "lamp/+", 1)]
    panel.disconnect()
    mqtt.publish("lamp/1", "on", 1)
    (one,) = mqtt.clients
    assert (one.is_connected, one.queued, one.version) == (False, 1, None)


def test_a_topic_alias_and_properties_of_version_5(mqtt: Mqtt) -> None:
    client = client5.Client((mqtt.host, mqtt.port))
    assert client.connect(codec5.connect("five")).code == 0
    client.publish("room/1", b"a", 1, topic_alias=1, content_type="text")
    client.publish("", b"b", 1, topic_alias=1)
    assert [(one.topic, one.payload) for one in mqtt.messages()] == [
        ("room/1", b"a"),
        ("room/1", b"b"),
    ]
    client.disconnect()


def test_a_shared_subscription_has_its_whole_name(mqtt: Mqtt) -> None:
    client = client5.Client((mqtt.host, mqtt.port))
    assert client.connect(codec5.connect("five")).code == 0
    for name in ("$share/one/jobs/+", "$share/two/jobs/+", "jobs/+"):
        client.subscribe(name, qos=1)
        assert mqtt.wait_for_subscription(name) == ("five", name, 1)
    assert len(mqtt.subscriptions) == 3
    client.disconnect()


def test_a_message_with_an_alias_is_dropped_and_the_alias_stays(mqtt: Mqtt) -> None:
    client = client5.Client((mqtt.host, mqtt.port))
    assert client.connect(codec5.connect("five")).code == 0
    mqtt.drop("room/1", next=2)
    client.publish("room/1", b"a", topic_alias=1)
    client.publish("", b"b", topic_alias=1)
    client.publish("", b"c", 1, topic_alias=1)
    assert [(one.topic, one.payload) for one in mqtt.messages()] == [("room/1", b"c")]
    assert "five -> PUBLISH room/1 b (dropped)" in mqtt.packets
    client.disconnect()


def test_a_duplicate_of_qos_2_is_one_message(mqtt: Mqtt) -> None:
    """[MQTT-4.3.3-2]"""
    client = connected(mqtt, "two")
    for dup in (False, True):
        client.send(codec.publish("once", b"x", 2, 7, dup=dup))
        client.expect_accepted(7, 2)
    client.release(7)
    assert len(mqtt.messages("once")) == 1
    client.disconnect()


def test_what_a_hook_forbids_is_no_message(mqtt: Mqtt) -> None:
    class Hooks:
        def may_publish(self, _client_id: bytes, topic: bytes) -> bool:
            return topic != b"secret"

    def install() -> None:
        mqtt.broker.hooks = Hooks()

    mqtt.broker.call(install)
    client = connected(mqtt, "someone")
    client.publish("secret", b"x", 1)
    client.publish("open", b"x", 1)
    assert [one.topic for one in mqtt.messages()] == ["open"]
    client.disconnect()


def test_passwords_are_not_in_the_report(mqtt: Mqtt) -> None:
    client = connected(mqtt, "ada", username="ada", password=b"lovelace")
    assert "CONNECT as 'ada'" in mqtt.report()
    assert "lovelace" not in mqtt.report() and b"lovelace".hex(" ") not in mqtt.report()
    client.disconnect()


def test_a_broken_callback_is_told_at_the_next_step() -> None:
    with Mqtt() as mqtt:
        mqtt.broker.subscribe("bad", lambda *_: 1 / 0)
        with pytest.raises(NotRunning, match="ZeroDivisionError"):
            for _ in range(100):
                mqtt.publish("bad")


def test_a_broken_callback_is_told_at_the_end_at_the_latest() -> None:
    mqtt = Mqtt()
    mqtt.broker.subscribe("bad", lambda *_: 1 / 0)
    mqtt.publish("bad")
    with pytest.raises(NotRunning, match="ZeroDivisionError"):
        mqtt.close()


def test_what_was_seen_stays_after_the_end() -> None:
    mqtt = Mqtt()
    mqtt.publish("a", "b")
    mqtt.close()
    mqtt.close()
    assert mqtt.messages("a") and "no" not in mqtt.log
    with pytest.raises(NotRunning, match="closed"):
        mqtt.publish("a")


def test_in_unittest() -> None:
    class Case(unittest.TestCase):
        def setUp(self) -> None:
            self.mqtt = Mqtt()
            self.addCleanup(self.mqtt.close)

        def test_it(self) -> None:
            self.mqtt.publish("a", "1")
            self.assertEqual(self.mqtt.wait_for("a").payload, b"1")

    result = unittest.TestResult()
    Case("test_it").run(result)
    assert result.wasSuccessful() and result.testsRun == 1
