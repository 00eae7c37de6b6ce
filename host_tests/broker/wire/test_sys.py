"""The $SYS topics: what the broker says of itself, under mosquitto's names where it has them."""

import pytest

from .codec import Publish, Will

OURS = pytest.mark.ours("mosquitto has no tables, and tells only every so often")
EVERY_SECOND = pytest.mark.config("sys_interval 1")

NAMES = """\
version
uptime
clients/total
clients/connected
clients/active
clients/disconnected
clients/inactive
clients/maximum
messages/received
messages/sent
messages/stored
publish/messages/received
publish/messages/sent
publish/messages/dropped
bytes/received
bytes/sent
store/messages/count
store/messages/bytes
store/messages/bytes/limit
subscriptions/count
retained messages/count
heap/current
heap/size
heap/exhausted"""
LOADS = "messages/received messages/sent publish/received publish/sent bytes/received bytes/sent"
TABLES = "connections sessions subscriptions nodes retained messages deliveries received"
TABLES += " reassembly shares aliases"
HOW = "high", "refused", "limit"


def state(client, topic_filter="$SYS/#"):
    """What a new subscription is told, by the name behind $SYS/broker/."""
    client.subscribe(topic_filter)
    told = [message for message in client.publishes() if message.retain]  # and no later round
    client.unsubscribe(topic_filter)
    return {m.topic.removeprefix("$SYS/broker/"): m.payload.decode() for m in told}


@EVERY_SECOND
def test_the_topics_are_there_with_mosquittos_names(mqtt):
    client = mqtt.connect()
    client.subscribe("$SYS/broker/#")
    expected = set(NAMES.splitlines())
    expected |= {f"load/{load}/{age}min" for load in LOADS.split() for age in (1, 5, 15)}
    found: set[str] = set()
    while not expected <= found:  # mosquitto tells some of them with its first round
        found.add(client.next().topic.removeprefix("$SYS/broker/"))
    assert found >= expected


@OURS
def test_every_table_says_how_full_it_was_and_what_it_refused(mqtt):
    found = state(mqtt.connect(), "$SYS/broker/slots/#")
    expected = {f"slots/{t}/{what}" for t in TABLES.split() for what in HOW}
    assert set(found) == expected
    assert all(value.isdigit() for value in found.values())


@OURS
def test_the_values_are_what_they_say(mqtt):
    found = state(mqtt.connect())
    assert found["version"].startswith("slotmq version ")
    assert found["uptime"].endswith(" seconds")
    numbers = set(NAMES.splitlines()) - {"version", "uptime"}
    assert all(found[name].isdigit() for name in numbers)
    assert all(float(found[name]) >= 0 for name in found if name.startswith("load/"))


@OURS
@pytest.mark.own_broker
def test_counts_follow_what_happens(mqtt, topic):
    watcher = mqtt.connect("watcher")
    before = state(watcher)
    assert (before["clients/connected"], before["clients/total"]) == ("1", "1")
    mqtt.connect("kept", clean=False).subscribe(f"{topic}/+", qos=1)
    mqtt.connect("kept", clean=False).disconnect()
    publisher = mqtt.connect("pub")
    publisher.publish(f"{topic}/1", b"retained and queued", 1, retain=True)
    after = state(watcher)
    assert (after["clients/connected"], after["clients/total"]) == ("2", "3")
    assert (after["clients/disconnected"], after["clients/inactive"]) == ("1", "1")
    assert after["subscriptions/count"] == "2"
    assert after["retained messages/count"] == "1"
    assert after["messages/stored"] == "1"
    assert int(after["publish/messages/received"]) == int(before["publish/messages/received"]) + 1
    assert int(after["bytes/received"]) > int(before["bytes/received"])
    mqtt.connect("kept", clean=True).disconnect()
    publisher.publish(f"{topic}/1", b"", 1, retain=True)
    publisher.disconnect()
    assert state(watcher)["messages/stored"] == "0"
    assert state(watcher, "$SYS/broker/clients/total") == {"clients/total": "1"}


@OURS
@pytest.mark.own_broker
@pytest.mark.config("limit subscriptions 2")
def test_refusals_are_counted(mqtt):
    client = mqtt.connect()
    assert client.request(("a", 0), ("b", 0), ("c", 0), ("d", 0)) == (0, 0, 0x80, 0x80)
    client.unsubscribe("a", "b")
    found = state(client, "$SYS/broker/slots/subscriptions/+")
    assert found == {f"slots/subscriptions/{what}": "2" for what in HOW}


@OURS
@pytest.mark.own_broker
@pytest.mark.config("message_size_limit 100")
def test_what_is_over_the_limit_counts_as_dropped(mqtt, topic):
    client = mqtt.connect()
    for qos in (0, 1, 2):
        client.publish(topic, b"x" * 101, qos)
    willing = mqtt.socket()
    willing.connect(mqtt.packet(will=Will(topic, b"x" * 101)))
    name = "publish/messages/dropped"
    assert state(client, f"$SYS/broker/{name}") == {name: "4"}


@EVERY_SECOND
def test_who_is_subscribed_is_told_every_interval(mqtt):
    client = mqtt.connect()
    client.subscribe("$SYS/broker/uptime")
    told = [client.next() for _ in range(3)]
    assert {m.topic for m in told} == {"$SYS/broker/uptime"}
    assert told[2].payload != told[0].payload
    assert not told[2].retain


@pytest.mark.own_broker
@pytest.mark.config("sys_interval 0")
def test_without_an_interval_there_are_none(mqtt):
    client = mqtt.connect()
    client.subscribe("$SYS/#")
    client.expect_silence()


@EVERY_SECOND
@pytest.mark.spec("MQTT-4.7.2-1")
def test_leading_wildcards_do_not_see_them(mqtt):
    client, clock = mqtt.connect(), mqtt.connect()
    clock.subscribe("$SYS/broker/uptime")
    client.subscribe("#", "+/broker/uptime", "+/#")
    clock.next()
    clock.next()
    told = [m for m in client.publishes() if m.topic.startswith("$SYS")]
    assert told == []


@pytest.mark.parametrize("retain", [False, True])
def test_clients_cannot_speak_there(mqtt, retain):
    listener = mqtt.connect()
    listener.subscribe("$SYS/made/up", qos=1)
    mqtt.connect().publish("$SYS/made/up", b"x", 1, retain=retain)
    listener.subscribe("$SYS/made/up", qos=1)
    listener.expect_silence()


@pytest.mark.parametrize("retain", [False, True])
def test_nor_do_their_wills(mqtt, retain):
    listener = mqtt.connect()
    listener.subscribe("$SYS/a/will", qos=1)
    mqtt.connect(will=Will("$SYS/a/will", b"x", 1, retain)).drop()
    listener.subscribe("$SYS/a/will", qos=1)
    listener.expect_silence()


@OURS
def test_a_subscription_has_them_whole_although_its_buffer_is_small(mqtt):
    client = mqtt.connect(narrow=True)
    client.subscribe("$SYS/#")
    expected = len(NAMES.splitlines()) + 3 * len(LOADS.split()) + 2 * len(TABLES.split())
    told = [client.next() for _ in range(expected)]
    assert len({m.topic for m in told}) == expected
    assert all(isinstance(m, Publish) and m.qos == 0 for m in told)
