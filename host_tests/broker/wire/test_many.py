"""The HOST preset's tables filled up, and many clients that connect, leave and publish."""

import threading
import time

from . import codec
from .codec import Publish
from .scene import spec

CONNECTIONS, SESSIONS, SUBSCRIPTIONS, RETAINED = 256, 1024, 12_000, 2_000


@spec("4.5.0-1")
def test_256_connections_are_served_at_once(mqtt, topic):
    clients = [mqtt.connect() for _ in range(CONNECTIONS)]
    for i, client in enumerate(clients):
        client.subscribe(topic, qos=i % 3)
    mqtt.connect().publish(topic, b"all", 2)
    for i, client in enumerate(clients):
        client.receive(topic, b"all", i % 3)
        client.expect_silence()


@spec("3.1.2-5")
def test_1024_sessions_are_stored(mqtt, topic):
    for i in range(SESSIONS):
        client = mqtt.reader(f"{topic}/{i % 4}", name=f"kept{i}x", qos=1, clean=False)
        client.disconnect()
    publisher = mqtt.connect()
    for i in range(4):
        publisher.publish(f"{topic}/{i}", b"%d" % i, 1)
    for i in range(0, SESSIONS, 41):
        client = mqtt.connect(f"kept{i}x", clean=False)
        assert client.connack.session_present
        client.receive(f"{topic}/{i % 4}", b"%d" % (i % 4), 1)


@spec("3.3.2-3")
def test_12000_subscriptions_are_kept_apart(mqtt, topic):
    each = 300
    clients = [mqtt.connect() for _ in range(SUBSCRIPTIONS // each)]
    for number, client in enumerate(clients):
        names = [f"{topic}/{number}/{i}/{'+' if i % 2 else 'x'}" for i in range(each)]
        assert client.request(*((name, 0) for name in names)) == (0,) * each
    publisher = mqtt.connect()
    for number, client in enumerate(clients):
        publisher.publish(f"{topic}/{number}/{number}/x")
        client.receive(f"{topic}/{number}/{number}/x")
    for client in clients:
        client.expect_silence()


@spec("3.3.1-6")
def test_2000_retained_messages_are_stored(mqtt, topic):
    publisher, subscriber = mqtt.connect(), mqtt.connect()
    names = [f"{topic}/{i:04}" for i in range(RETAINED)]
    for name in names:
        publisher.send(codec.publish(name, name.encode(), retain=True))
    publisher.ping()
    subscriber.subscribe(f"{topic}/+")
    kept = [Publish(name, name.encode(), 0, retain=True) for name in names]
    assert subscriber.receive_many(RETAINED) == kept
    for name in names:
        publisher.send(codec.publish(name, b"", retain=True))
    publisher.ping()


def test_2500_clients_connect_and_leave(mqtt, topic):
    witness = mqtt.reader(topic)
    for i in range(2500):
        client = mqtt.connect(f"guest{i % 7}x", clean=True, will=codec.Will(topic, b"%d" % i))
        if i % 3:
            client.disconnect()
        else:
            client.drop()
            witness.receive(topic, b"%d" % i)
    witness.expect_silence()


def test_a_storm_of_takeovers(mqtt, topic):
    clients = [mqtt.connect("contested", clean=bool(i % 2)) for i in range(301)]
    *others, last = clients
    for client in others:
        client.expect_closed()
    last.subscribe(topic, qos=1)
    last.publish(topic, b"x", 1)
    last.receive(topic, b"x", 1)


def test_during_a_flood_others_get_answers(mqtt, topic):
    flooder, other = mqtt.connect(), mqtt.connect()
    flood = codec.publish(topic, b"x" * 1000) * 8000
    thread = threading.Thread(target=flooder.sock.sendall, args=(flood,))
    thread.start()
    longest = 0.0
    while thread.is_alive():
        start = time.monotonic()
        other.ping()
        longest = max(longest, time.monotonic() - start)
    thread.join()
    flooder.ping()
    assert longest < 1.0
