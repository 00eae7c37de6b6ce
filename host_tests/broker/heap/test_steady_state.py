"""Nothing is allocated while messages pass, and nothing stays allocated when clients have left."""

import random
import socket
import struct
from collections.abc import Iterator

import pytest

from host_tests.broker.wire import codec
from host_tests.broker.wire.client import Client
from host_tests.broker.wire.codec import Ack, Connack, Publish
from slotmq_tools.errors import ToolError

from .traffic import BURST, TOPICS, Traffic
from .watched import Watched, assert_restored

CLIENTS = 4  # and one in reserve
ROUNDS = 300
ROUTES = 16
RESET = struct.pack("ii", 1, 0)


def connect(watched: Watched, name: str, **options: object) -> Client:
    client = Client(watched.address)
    assert client.connect(codec.connect(name, **options)).code == 0  # type: ignore[arg-type]
    return client


# The steady state


@pytest.fixture
def traffic(watched: Watched) -> Iterator[Traffic]:
    running = Traffic(watched.address)
    yield running
    running.close()
    watched.alone()


def test_messages_of_every_qos_allocate_nothing(watched: Watched, traffic: Traffic) -> None:
    sent = [0, 0, 0]
    assert TOPICS > ROUTES  # so that topics are looked up again and again
    with watched.locked() as seen:
        for _ in range(ROUNDS):
            for qos in (0, 1, 2):
                sent[qos] += traffic.burst(qos)
            traffic.ping()
    assert sent == [ROUNDS * BURST] * 3
    assert min(sent) > 3000
    assert seen["changed"] == 0
    assert seen["turns"] > ROUNDS


def test_a_reader_that_blocks_allocates_nothing(watched: Watched, traffic: Traffic) -> None:
    traffic.block()
    with watched.locked() as seen:
        for _ in range(20):
            traffic.block()
            traffic.burst(2)
    assert seen["changed"] == 0
    assert seen["blocked"] >= 20
    assert seen["woken"] == seen["blocked"]


def test_messages_leave_every_table_as_it_was(watched: Watched, traffic: Traffic) -> None:
    for qos in (0, 1, 2):
        traffic.burst(qos)
    traffic.block()
    before = watched.unloaded()
    for _ in range(50):
        for qos in (0, 1, 2):
            traffic.burst(qos)
    traffic.block()
    assert_restored(before, watched.unloaded())


def test_an_allocation_of_one_block_is_found() -> None:
    with Watched() as own:
        own.ask(b"a")
        with pytest.raises(ToolError, match="MemoryError"), own.locked():
            own.ask(b"a")


# Clients that come and go


@pytest.fixture
def flat(watched: Watched) -> Iterator[None]:
    """After the test every table is as before, and so is the heap."""
    warm = connect(watched, "warm")  # some of what it loads stays
    warm.subscribe("warm")
    warm.sock.close()
    before = watched.alone()
    yield
    assert_restored(before, watched.alone())


@pytest.mark.usefixtures("flat")
def test_ten_thousand_connects_and_disconnects(watched: Watched) -> None:
    expected = bytes.fromhex("20020000 9003000101")
    for n in range(10_000):
        with socket.create_connection(watched.address) as sock:
            sock.sendall(codec.connect(f"c{n % 7}") + codec.subscribe(1, (f"t/{n % 50}/+", 1)))
            found = b""
            while len(found) < len(expected):
                found += sock.recv(100) or b"closed, and much too early"
            assert found == expected
            if n % 2:
                sock.sendall(codec.DISCONNECT)


@pytest.mark.usefixtures("flat")
def test_a_takeover_storm(watched: Watched) -> None:
    will = codec.Will("will", qos=1, retain=False)
    clients = []
    for _ in range(1000):
        clients.append(connect(watched, "the same", will=will))
        clients[-1].subscribe("t/#", "will", qos=2)
    clients[-1].send(codec.DISCONNECT)
    for client in clients:
        while client.sock.recv(1000):
            pass  # the broker has closed it
        client.sock.close()


@pytest.mark.usefixtures("flat")
def test_resets_in_the_middle_of_anything(watched: Watched) -> None:
    source = random.Random(7)
    witness = connect(watched, "witness")
    for n in range(1000):
        client = Client(watched.address)
        session = codec.connect(f"c{n % 3}", will=codec.Will("t/will", qos=1))
        session += codec.subscribe(1, ("t/#", 2))
        session += b"".join(codec.publish("t/a", b"x" * 300, qos, 9) for qos in (0, 1, 2))
        client.send(session[: source.randrange(len(session))])
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        client.sock.close()
        witness.ping()
    witness.sock.close()


@pytest.mark.usefixtures("flat")
def test_clients_beyond_the_limit(watched: Watched) -> None:
    clients = [connect(watched, f"c{n}") for n in range(CLIENTS)]
    for n in range(500):
        one_more = Client(watched.address)
        assert one_more.connect(codec.connect(f"more{n}")) == Connack(False, 3)
        one_more.expect_closed()
    for client in clients:
        client.ping()
        client.sock.close()


@pytest.mark.usefixtures("flat")
def test_more_sockets_than_slots_wait_and_are_served(watched: Watched) -> None:
    silent = [socket.create_connection(watched.address) for _ in range(20)]
    for sock in silent:
        sock.close()
    after = connect(watched, "after")
    after.ping()
    after.sock.close()


@pytest.mark.usefixtures("flat")
def test_sessions_that_stay_and_are_resumed(watched: Watched) -> None:
    """All that a session can use is used while it is offline, and freed at last."""
    publisher = connect(watched, "publisher")
    for _ in range(50):
        away = connect(watched, "away", clean=False)
        away.subscribe("t/#", qos=2)
        publisher.publish("t/1", b"x" * 100, 1)
        again = away.next()
        assert isinstance(again, Publish)
        assert again.payload == b"x" * 100
        away.send(codec.publish("elsewhere", b"y", 2, 5))
        away.expect(Ack(codec.PUBREC, 5))
        away.sock.close()
        publisher.publish("t/2", b"x" * 100, 2)
    publisher.sock.close()
    connect(watched, "away").sock.close()
