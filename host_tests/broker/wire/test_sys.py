"""The $SYS topics, with the names of mosquitto where it has them."""

import pytest

from .codec import Publish, Will
from .scene import spec

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
heap/exhausted
exceptions"""
LAST = "recording/lost"  # of slotmq's own
LOADS = "messages/received messages/sent publish/received publish/sent bytes/received bytes/sent"
TABLES = "connections sessions subscriptions nodes retained messages deliveries received"
TABLES += " reassembly shares aliases"
HOW = "high", "refused", "limit"


def state(client, topic_filter="$SYS/#"):
    """What a new subscription gets, by the name after $SYS/broker/."""
    client.subscribe(topic_filter)
    found = [message for message in client.publishes() if message.retain]  # no later round
    client.unsubscribe(topic_filter)
    return {m.topic.removeprefix("$SYS/broker/"): m.payload.decode() for m in found}


@EVERY_SECOND
def test_the_topics_of_mosquitto_are_there(mqtt):
    client = mqtt.reader("$SYS/broker/#")
    expected = set(NAMES.splitlines())
    expected |= {f"load/{load}/{age}min" for load in LOADS.split() for age in (1, 5, 15)}
    found: set[str] = set()
    while not expected <= found:  # mosquitto sends some of them with its first round
        found.add(client.next().topic.removeprefix("$SYS/broker/"))
    assert found >= expected


@OURS
def test_every_table_has_high_refused_and_limit(mqtt):
    found = state(mqtt.connect(), "$SYS/broker/slots/#")
    expected = {f"slots/{t}/{what}" for t in TABLES.split() for what in HOW}
    assert set(found) == expected
    assert all(value.isdigit() for value in found.values())


@OURS
def test_the_values_are_of_the_right_kind(mqtt):
    found = state(mqtt.connect())
    assert found["version"].startswith("slotmq version ")
    assert found["uptime"].endswith(" seconds")
    numbers = {*NAMES.splitlines(), LAST} - {"version", "uptime"}
    assert all(found[name].isdigit() for name in numbers)
    assert all(float(found[name]) >= 0 for name in found if name.startswith("load/"))


MORE = "connections/socket/count shared_subscriptions/count packet/out/bytes packet/out/count"


@OURS
@pytest.mark.own_broker
def test_a_computer_has_more_of_those_of_mosquitto(mqtt, topic, request):
    watcher = mqtt.connect()
    found = state(watcher)
    if "micropython" in request.node.name:
        assert not set(MORE.split()) & set(found)
        return
    values = [found[name] for name in MORE.split()]
    assert (values[0], values[1], values[3]) == ("1", "0", "0")
    assert values[2].isdigit()  # this answer itself waits there
    assert int(found["heap/maximum"]) > 1_000_000
    loads = ("publish/dropped", "sockets", "connections")
    assert all(f"load/{load}/{age}min" in found for load in loads for age in (1, 5, 15))
    assert found["clients/expired"] == "0"
    mqtt.connect()
    assert state(watcher)["connections/socket/count"] == "2"


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
@pytest.mark.config("limit subscriptions 2\nmessage_size_limit 100")
def test_refusals_and_messages_over_the_size_limit_are_counted(mqtt, topic):
    client = mqtt.connect()
    assert client.request(("a", 0), ("b", 0), ("c", 0), ("d", 0)) == (0, 0, 0x80, 0x80)
    client.unsubscribe("a", "b")
    found = state(client, "$SYS/broker/slots/subscriptions/+")
    assert found == {f"slots/subscriptions/{what}": "2" for what in HOW}
    for qos in (0, 1, 2):
        client.publish(topic, b"x" * 101, qos)
    willing = mqtt.socket()
    willing.connect(mqtt.packet(will=Will(topic, b"x" * 101)))
    name = "publish/messages/dropped"
    assert state(client, f"$SYS/broker/{name}") == {name: "4"}


@EVERY_SECOND
def test_a_subscription_gets_them_every_interval(mqtt):
    client = mqtt.reader("$SYS/broker/uptime")
    found = [client.next() for _ in range(3)]
    assert {m.topic for m in found} == {"$SYS/broker/uptime"}
    assert found[2].payload != found[0].payload
    assert not found[2].retain


@pytest.mark.config("sys_interval 0")
def test_without_an_interval_there_are_none(mqtt):
    mqtt.reader("$SYS/#").expect_silence()


@EVERY_SECOND
@spec("4.7.2-1")
def test_leading_wildcards_do_not_match_them(mqtt):
    client, clock = mqtt.connect(), mqtt.connect()
    clock.subscribe("$SYS/broker/uptime")
    client.subscribe("#", "+/broker/uptime", "+/#")
    clock.next()
    clock.next()
    found = [m for m in client.publishes() if m.topic.startswith("$SYS")]
    assert found == []


@pytest.mark.parametrize("retain", [False, True])
def test_clients_cannot_publish_there(mqtt, retain):
    listener = mqtt.reader("$SYS/made/up", qos=1)
    mqtt.connect().publish("$SYS/made/up", b"x", 1, retain=retain)
    listener.subscribe("$SYS/made/up", qos=1)
    listener.expect_silence()


@pytest.mark.parametrize("retain", [False, True])
def test_wills_cannot_be_published_there(mqtt, retain):
    listener = mqtt.reader("$SYS/a/will", qos=1)
    mqtt.connect(will=Will("$SYS/a/will", b"x", 1, retain)).drop()
    listener.subscribe("$SYS/a/will", qos=1)
    listener.expect_silence()


@OURS
def test_a_client_with_a_small_buffer_gets_all_of_them(mqtt):
    client = mqtt.reader("$SYS/#", narrow=True)
    expected = len(NAMES.splitlines()) + 3 * len(LOADS.split()) + 2 * len(TABLES.split())
    found = [client.next() for _ in range(expected)]
    assert len({m.topic for m in found}) == expected
    assert all(isinstance(m, Publish) and m.qos == 0 for m in found)
