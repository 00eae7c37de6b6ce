"""What clients see of a broker on the board: every QoS, its limits, and their bad habits."""

import select
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from queue import Queue

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from host_tests.wire import codec
from host_tests.wire.client import Client

from .conftest import Deployed

CLIENTS = 4
STALL_S = 5
GONE_S = 90


@pytest.fixture(scope="module", autouse=True)
def plain(board: Deployed) -> None:
    if not board.serves():
        board.deploy()


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
    assert subscribed.wait(20)
    for n in range(12):
        client.publish(f"echo/{n}", b"x" * (40 * n), qos=n % 3)
    messages = [got.get(timeout=20) for _ in range(12)]
    for qos in (0, 1, 2):  # each in its order; paho passes QoS 2 on at its end
        found = [(m.topic, len(m.payload)) for m in messages if m.qos == qos]
        assert found == [(f"echo/{n}", 40 * n) for n in range(qos, 12, 3)]
    client.disconnect()
    client.loop_stop()


def test_four_clients_and_a_fifth_that_is_told_so(board: Deployed) -> None:
    clients = [board.connect(f"client{n}") for n in range(CLIENTS)]
    for client in clients:
        client.subscribe("all", qos=1)
    fifth = board.open()
    assert fifth.connect(codec.connect("fifth")).code == 3
    fifth.expect_end()
    clients[0].publish("all", b"to all", 1)
    for client in clients:
        client.receive("all", b"to all", 1)


def test_a_fifth_takes_over_its_own_half_open_session(board: Deployed) -> None:
    clients = [board.connect(f"client{n}") for n in range(CLIENTS)]
    again = board.connect("client2")
    again.subscribe("here", qos=1)
    clients[0].publish("here", b"x", 1)
    again.receive("here", b"x", 1)
    clients[2].expect_end()


def test_who_does_not_read_takes_lwips_memory_and_gives_it_back(board: Deployed) -> None:
    """Of its 8,000 bytes one socket takes 7,100, and then every send to another one is
    ENOMEM: see boards/RPI_PICO_W. The broker goes on trying, loses nothing, and serves them
    again when the one that does not read has gone (of which slirp tells lwIP late)."""
    resets = board.board.figures()["resets"]
    slow = board.connect("slow")
    slow.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    slow.subscribe("flood", qos=0)
    quick = board.connect("quick")
    quick.subscribe("flood", qos=1)
    sender = board.connect("sender")
    sent = []
    for n in range(200):
        sent.append(b"%04d" % n * 125)
        sender.send(codec.publish("flood", sent[-1], 1, n + 1))
        if not select.select([quick.sock], [], [], STALL_S)[0]:
            break
        quick.receive("flood", sent[-1], 1)
        sender.expect(codec.Ack(codec.PUBACK, n + 1))
    else:
        raise AssertionError("nothing held anybody up: is lwIP another one?")
    slow.reset()
    board.clients.remove(slow)
    assert select.select([quick.sock], [], [], GONE_S)[0]
    quick.receive("flood", sent[-1], 1)
    sender.expect(codec.Ack(codec.PUBACK, len(sent)))
    assert board.board.figures()["resets"] == resets


def test_a_thousand_clients_come_and_go_and_the_heap_is_flat(board: Deployed) -> None:
    def come_and_go(name: str) -> None:
        client = Client(board.address)
        assert client.connect(codec.connect(name)).code == 0
        client.disconnect()
        client.sock.close()

    def heap() -> int:
        """The least of some readings: what was loaded on demand comes and goes."""
        found = []
        for _ in range(3):
            time.sleep(2)
            found.append(board.system("broker/heap/current"))
        return min(found)

    with ThreadPoolExecutor(3) as pool:  # most of the time each waits for PPP
        list(pool.map(come_and_go, [f"warm{n}" for n in range(20)]))
        before = heap()
        list(pool.map(come_and_go, [f"c{n}" for n in range(1000)]))
        after = heap()
    assert abs(after - before) <= 1024, (before, after)  # a byte for each, at the most
    assert board.system("broker/clients/connected") == 1
