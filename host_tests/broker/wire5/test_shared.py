"""Shared subscriptions: one member of a group gets each message."""

from itertools import chain

import pytest

from ..wire.refusals import refuse_filter
from ..wire.scene import spec
from . import codec
from .codec import NO_LOCAL, Ack

QOS = [0, 1, 2]
TAKEN = pytest.mark.ours("mosquitto takes every share name")


def members(mqtt5, share, count, qos=0, **options):
    """`count` clients that share a filter."""
    clients = [mqtt5.connect(f"member{i}", **options) for i in range(count)]
    for client in clients:
        client.subscribe(share, qos=qos)
    return clients


def holder(clients):
    """The number of the member that got the message, of two, and the message."""
    found = [client.publishes() for client in clients]
    [(number, message)] = [(i, m) for i, messages in enumerate(found) for m in messages]
    return number, message


def received(clients):
    return [[message.payload for message in client.receive_all()] for client in clients]


@spec(new="4.8.2-1 4.8.2-2")
@pytest.mark.parametrize("qos", QOS)
def test_each_message_goes_to_one_of_the_group(mqtt5, topic, qos):
    clients = members(mqtt5, f"$share/group/{topic}/+", 3, qos=2)
    publisher = mqtt5.connect()
    payloads = [b"%d" % i for i in range(12)]
    for payload in payloads:
        publisher.publish(f"{topic}/x", payload, qos)
    found = received(clients)
    assert sorted(chain(*found)) == sorted(payloads)
    assert all(found), "a member got none of twelve"
    assert all(part == sorted(part, key=int) for part in found)


def test_groups_are_independent(mqtt5, topic):
    """Of each other, of a plain subscription, and of a wider filter."""
    one = members(mqtt5, f"$share/one/{topic}", 2)
    two, alone, wide = mqtt5.connect(), mqtt5.connect(), mqtt5.connect()
    two.subscribe(f"$share/two/{topic}")
    alone.subscribe(topic)
    wide.subscribe(f"$share/one/{topic}/#")
    publisher = mqtt5.connect()
    for i in range(4):
        publisher.publish(topic, b"%d" % i)
    everything = [b"0", b"1", b"2", b"3"]
    assert sorted(chain(*received(one))) == everything
    assert received([two, alone, wide]) == [everything] * 3


@spec(new="4.8.2-3")
def test_each_member_has_its_own_qos(mqtt5, topic):
    clients = [mqtt5.connect() for _ in QOS]
    for qos, client in enumerate(clients):
        client.subscribe(f"$share/group/{topic}", qos=qos)
    publisher = mqtt5.connect()
    for _ in range(9):
        publisher.publish(topic, b"x", 2)
    found = [{message.qos for message in client.receive_all()} for client in clients]
    assert found == [{0}, {1}, {2}]


def test_a_client_may_have_a_shared_and_a_plain_subscription(mqtt5, topic):
    client = mqtt5.reader(f"$share/group/{topic}", subscription_id=1)
    client.subscribe(topic, subscription_id=2)
    client.publish(topic)
    found = client.receive_all()
    numbers = [n for message in found for n in message.properties["subscription_id"]]
    assert sorted(numbers) == [1, 2]


@spec(new="3.10.4-1 3.10.4-5")
def test_a_member_that_unsubscribes_or_leaves_gets_no_more(mqtt5, topic):
    share = f"$share/group/{topic}"
    first, second, third = members(mqtt5, share, 3)
    assert first.withdraw(topic, f"$share/other/{topic}", share) == (0x11, 0x11, 0)
    second.disconnect()
    publisher = mqtt5.connect()
    for i in range(3):
        publisher.publish(topic, b"%d" % i, 1)
    assert received([first, third]) == [[], [b"0", b"1", b"2"]]
    third.unsubscribe(share)
    publisher.publish(topic, b"nobody", 1)
    first.expect_silence()
    third.expect_silence()


def test_a_shared_subscription_gets_no_retained_messages(mqtt5, topic):
    publisher = mqtt5.connect()
    publisher.publish(topic, b"kept", retain=True)
    client = mqtt5.reader(f"$share/group/{topic}", qos=1)
    client.expect_silence()
    publisher.publish(topic, b"", 1, retain=True)
    client.receive(topic, b"", 1)


def test_connected_members_come_before_members_that_are_away(mqtt5, topic):
    here, away = members(mqtt5, f"$share/group/{topic}", 2, qos=1, session_expiry=60)
    away.disconnect()
    publisher = mqtt5.connect()
    for i in range(4):
        publisher.publish(topic, b"%d" % i, 1)
    found = received([here, mqtt5.connect("member1", clean=False)])
    assert sorted(chain(*found)) == [b"0", b"1", b"2", b"3"], "and nothing is lost"


def test_if_all_are_away_one_of_them_gets_it_later(mqtt5, topic):
    clients = members(mqtt5, f"$share/group/{topic}", 2, qos=1, session_expiry=60)
    for client in clients:
        client.disconnect()
    mqtt5.connect().publish(topic, b"x", 1)
    clients = [mqtt5.connect(f"member{i}", clean=False) for i in range(2)]
    assert sorted(received(clients)) == [[], [b"x"]]


@spec(new="4.8.2-4")
@pytest.mark.parametrize("began", [False, True], ids=["sent", "released"])
def test_a_qos_2_delivery_is_finished_by_the_same_member(mqtt5, topic, began):
    clients = members(mqtt5, f"$share/group/{topic}", 2, qos=2, session_expiry=60)
    mqtt5.connect("pub").publish(topic, b"x", 2)
    number, message = holder(clients)
    if began:
        clients[number].send(codec.ack(codec.PUBREC, message.packet_id))
        clients[number].expect(Ack(codec.PUBREL, message.packet_id))
    clients[number].drop()
    clients[1 - number].expect_silence()
    client = mqtt5.connect(f"member{number}", clean=False)
    if began:
        assert client.next() == Ack(codec.PUBREL, message.packet_id)
        client.send(codec.ack(codec.PUBCOMP, message.packet_id))
    else:
        client.receive(topic, b"x", 2, dup=True)
    client.expect_silence()
    clients[1 - number].expect_silence()


@spec(new="4.8.2-5")
def test_no_other_member_gets_it_when_the_session_ends(mqtt5, topic):
    clients = members(mqtt5, f"$share/group/{topic}", 2, qos=2)
    mqtt5.connect("pub").publish(topic, b"x", 2)
    number, _ = holder(clients)
    clients[number].drop()
    clients[1 - number].expect_silence()


@spec(new="4.8.2-6 4.4.0-2")
@pytest.mark.parametrize("qos", [1, 2])
def test_a_refused_message_goes_to_no_other_member(mqtt5, topic, qos):
    clients = members(mqtt5, f"$share/group/{topic}", 2, qos=qos, session_expiry=60)
    mqtt5.connect("pub").publish(topic, b"x", qos)
    number, message = holder(clients)
    kind = codec.PUBACK if qos == 1 else codec.PUBREC
    clients[number].send(codec.ack(kind, message.packet_id, 0x80))
    clients[number].expect_silence()
    clients[number].drop()
    clients[1 - number].expect_silence()
    mqtt5.connect(f"member{number}", clean=False).expect_silence()


def test_a_shared_filter_is_no_topic(mqtt5, topic):
    client = mqtt5.reader(f"$share/group/{topic}")
    client.publish(f"$share/group/{topic}", b"literally")
    client.expect_silence()


@spec(new="4.8.2-1 4.8.2-2")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("$share//a", marks=TAKEN),
        pytest.param("$share/+/a", marks=TAKEN),
        *("$share/", "$share/g", "$share/g/", "$share//", "$share/+", "$share/#"),
        *("$share/g+/a", "$share/g#/a", "$share/+g/a", "$share/#/a", "$share/g+", "$share/a+b/"),
        *("$share/g/#/a", "$share/g/a+", "$share/g/a#", "$share/g/+a", "$share/g//#/"),
    ],
)
def test_an_invalid_shared_filter_is_refused(mqtt5, name):
    """Also after a valid filter, and in UNSUBSCRIBE."""
    for packet in (
        codec.subscribe(1, (name, 0)),
        codec.subscribe(1, ("t", 0), (name, NO_LOCAL)),
        codec.unsubscribe(1, "t", name),
    ):
        refuse_filter(mqtt5, mqtt5.connect(), packet)


@pytest.mark.parametrize(
    ("filter_", "topic"),
    [("/a", "/a"), ("#", "any/thing"), ("+/b", "a/b"), ("$share/h/c", "$share/h/c")],
)
def test_shared_filters_of_every_form(mqtt5, filter_, topic):
    client = mqtt5.connect()
    root = f"own{mqtt5.number}"
    client.subscribe(f"$share/grüppe {root}/{root}/{filter_}")
    client.publish(f"{root}/{topic}")
    client.receive(f"{root}/{topic}")


@pytest.mark.config("limit shares 0")
@pytest.mark.ours("mosquitto's tables grow")
@spec(new="3.2.2-17 3.9.3-1")
def test_without_shares_a_shared_filter_has_0x9e(mqtt5, topic):
    client = mqtt5.connect()
    assert client.connack.properties["shared_available"] == 0
    wanted = ((f"$share/g/{topic}", 1), (f"{topic}/a", 1))
    assert client.request(*wanted) == (0x9E, 1)
    assert client.withdraw(*(name for name, _ in wanted)) == (0x11, 0)
