"""Clients of the broker on the board: every QoS, and the limit of connections."""

import threading
from queue import Queue

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from host_tests.broker.wire import codec

from .conftest import ANSWER_S, Deployed

CLIENTS = 4


@pytest.mark.parametrize("version", [MQTTProtocolVersion.MQTTv311, MQTTProtocolVersion.MQTTv5])
def test_paho_gets_its_own_messages_at_every_qos(
    board: Deployed, version: MQTTProtocolVersion
) -> None:
    got: Queue[paho.MQTTMessage] = Queue()
    subscribed = threading.Event()
    client = paho.Client(CallbackAPIVersion.VERSION2, "paho", protocol=version)
    client.on_message = lambda _c, _u, message: got.put(message)
    client.on_connect = lambda c, *_: c.subscribe("echo/#", 2)
    client.on_subscribe = lambda *_: subscribed.set()
    client.connect(*board.address)
    client.loop_start()
    assert subscribed.wait(ANSWER_S)
    for n in range(12):
        client.publish(f"echo/{n}", b"x" * (40 * n), qos=n % 3)
    messages = [got.get(timeout=ANSWER_S) for _ in range(12)]
    for qos in (0, 1, 2):  # each QoS in its order; paho delivers QoS 2 after PUBREL
        found = [(m.topic, len(m.payload)) for m in messages if m.qos == qos]
        assert found == [(f"echo/{n}", 40 * n) for n in range(qos, 12, 3)]
    client.disconnect()
    client.loop_stop()


def test_four_clients_are_served_and_a_fifth_is_refused(board: Deployed) -> None:
    clients = [board.connect(f"client{n}") for n in range(CLIENTS)]
    for client in clients:
        client.subscribe("all", qos=1)
    fifth = board.open()
    assert fifth.connect(codec.connect("fifth")).code == 3
    fifth.expect_end()
    clients[0].publish("all", b"to all", 1)
    for client in clients:
        client.receive("all", b"to all", 1)


def test_a_fifth_connection_may_take_over_its_own_session(board: Deployed) -> None:
    clients = [board.connect(f"client{n}") for n in range(CLIENTS)]
    again = board.connect("client2")
    again.subscribe("here", qos=1)
    clients[0].publish("here", b"x", 1)
    again.receive("here", b"x", 1)
    clients[2].expect_end()
