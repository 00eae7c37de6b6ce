"""Publishers and subscribers of the load generator: scripted, through the relay and slotmq."""

import socket
from collections.abc import Iterator

import pytest

from slotmq_dev.bench import brokers, pipelined
from slotmq_dev.bench.client import Client
from slotmq_dev.bench.numbered import Flow, Series, Violation
from slotmq_dev.bench.pipeline import Publisher, Subscriber
from slotmq_dev.bench.pipelined import Shape
from slotmq_tools import codec

Ends = tuple[Client, socket.socket]


@pytest.fixture
def ends() -> Iterator[Ends]:
    """A client that has sent no CONNECT, and the broker's end of its connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = Client(listener.getsockname())
        broker, _ = listener.accept()
        yield client, broker
        client.close()
        broker.close()


def packet_ids(data: bytes, kind: int) -> list[int]:
    packets = codec.Reader().packets(data)
    return [int.from_bytes(body, "big") for first, body in packets if first >> 4 == kind]


def acknowledgements(kind: int, *ids: int) -> bytes:
    return b"".join(codec.ack(kind, packet_id) for packet_id in ids)


def publisher(client: Client, qos: int, *, depth: int = 1) -> tuple[Publisher, Flow]:
    series = Series(0, ["t"], qos=qos, burst=2, depth=depth)
    flow = Flow(series)
    return Publisher(client, series, [flow], qos=qos, depth=depth), flow


def test_a_publisher_waits_for_its_subscriber_and_its_acknowledgements(ends: Ends) -> None:
    client, broker = ends
    sender, flow = publisher(client, 1)
    sender.fill()
    size = len(broker.recv(4096))
    flow.settle(2)
    sender.fill()
    broker.sendall(acknowledgements(codec.PUBACK, 1, 2))
    sender.on_readable()
    assert sender.settled()
    sender.fill()
    assert len(broker.recv(4096)) == size, "a second burst was sent too early"


def test_a_publisher_completes_qos_2(ends: Ends) -> None:
    client, broker = ends
    sender, _ = publisher(client, 2)
    sender.fill()
    broker.recv(4096)
    broker.sendall(acknowledgements(codec.PUBREC, 1, 2))
    sender.on_readable()
    assert packet_ids(broker.recv(4096), codec.PUBREL) == [1, 2]
    assert not sender.settled()
    broker.sendall(acknowledgements(codec.PUBCOMP, 1, 2))
    sender.on_readable()
    assert sender.settled()


@pytest.mark.parametrize(
    "answer",
    [
        acknowledgements(codec.PUBACK, 2),
        acknowledgements(codec.PUBACK, 1, 1),
        acknowledgements(codec.PUBACK, 1, 2, 1),
    ],
)
def test_a_publisher_refuses_wrong_acknowledgements(ends: Ends, answer: bytes) -> None:
    client, broker = ends
    sender, _ = publisher(client, 1)
    sender.fill()
    broker.sendall(answer)
    with pytest.raises(Violation, match="packet id"):
        sender.on_readable()


@pytest.mark.parametrize(("qos", "answer"), [(0, None), (1, codec.PUBACK), (2, codec.PUBREC)])
def test_a_subscriber_acknowledges_messages(ends: Ends, qos: int, answer: int | None) -> None:
    client, broker = ends
    series = Series(0, ["t"], qos=qos, burst=2)
    flow = Flow(series)
    receiver = Subscriber(client, {0: flow}, qos)
    burst = series.next_burst()
    flow.publish(burst)
    broker.sendall(burst)
    receiver.on_readable()
    if answer:
        assert packet_ids(broker.recv(4096), answer) == [1, 2]
    assert flow.settled == (0 if qos == 2 else 2)


def test_a_subscriber_completes_qos_2(ends: Ends) -> None:
    client, broker = ends
    series = Series(0, ["t"], qos=2, burst=2)
    flow = Flow(series)
    receiver = Subscriber(client, {0: flow}, 2)
    burst = series.next_burst()
    flow.publish(burst)
    broker.sendall(burst + acknowledgements(codec.PUBREL, 1, 2))
    receiver.on_readable()
    answers = broker.recv(4096)
    assert packet_ids(answers, codec.PUBCOMP) == [1, 2]
    assert flow.due == 0


@pytest.mark.parametrize("qos", [1, 2])
def test_a_subscriber_detects_a_duplicate(ends: Ends, qos: int) -> None:
    client, broker = ends
    series = Series(0, ["t"], qos=qos)
    flow = Flow(series)
    receiver = Subscriber(client, {0: flow}, qos)
    message = series.next_burst()
    flow.publish(message)
    broker.sendall(message + message)
    with pytest.raises(Violation):
        receiver.on_readable()


@pytest.mark.parametrize("shape", [Shape(2, 2), Shape(1, 3), Shape(3, 1, burst=20, depth=1)])
def test_the_relay_delivers_everything(shape: Shape) -> None:
    relay = next(each for each in brokers.BROKERS if each.name == "relay-cpython")
    with brokers.running(relay, shape.publishers, shape.subscribers) as running:
        pipeline = pipelined.connect(shape, running.address, handshake=False)
        deliveries = pipeline.run_bursts(3)
        assert pipeline.run(0.05) > 0
        pipeline.close()
    links = max(shape.publishers, shape.subscribers)
    assert deliveries == 3 * shape.depth * shape.burst * links


@pytest.mark.parametrize("alias", [False, True])
@pytest.mark.parametrize("qos", [0, 1])
def test_slotmq_delivers_everything_in_version_5(qos: int, alias: bool) -> None:
    shape = Shape(2, 2, qos=qos, burst=20, depth=1, level=5, alias=alias)
    ours = next(each for each in brokers.BROKERS if each.name == "slotmq-cpython")
    with brokers.running(ours) as running:
        pipeline = pipelined.connect(shape, running.address)
        deliveries = pipeline.run_bursts(3)
        pipeline.close()
    assert deliveries == 3 * shape.burst * 2


def test_a_shape_is_pairs_or_one_to_many() -> None:
    with pytest.raises(ValueError, match="pairs"):
        Shape(2, 3)
