"""The benchmark finds lost, double, altered and reordered messages, and counts what it says."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from slotmq_dev.bench import brokers, page, pipelined
from slotmq_dev.bench.__main__ import main
from slotmq_dev.bench.client import Client
from slotmq_dev.bench.instructions import BUDGETS, Count, faults, parse_log
from slotmq_dev.bench.meter import Sleeper
from slotmq_dev.bench.numbered import Flow, Series, Violation
from slotmq_dev.bench.pipeline import Publisher, Subscriber
from slotmq_dev.bench.pipelined import Shape
from slotmq_dev.bench.results import CPYTHON, TARGETS, Cell, Results, judged, medians, number
from slotmq_dev.bench.workloads import WORKLOADS
from slotmq_dev.peers import valgrind
from slotmq_tools import codec
from slotmq_tools.errors import ToolError

OURS = next(each for each in brokers.BROKERS if each.name == CPYTHON)
SIZE = len(codec.publish(b"t/0", bytes(16)))

# Messages and their check


def exact_flow(**options: int) -> tuple[Flow, list[bytes]]:
    """A flow, and the four messages that it waits for."""
    sent = Series(3, ["t/0"], burst=4)
    flow = Flow(sent, exact=True, **options)
    burst = sent.next_burst()
    flow.publish(burst)
    return flow, [burst[start : start + SIZE] for start in range(0, len(burst), SIZE)]


def test_bursts_in_flight_share_no_packet_id_and_topics_take_turns() -> None:
    sent = Series(0, ["a", "b", "c", "d"], qos=1, burst=2, depth=2)
    bodies = [body for _ in range(3) for _, body in codec.Reader().packets(sent.next_burst())]
    assert [int.from_bytes(body[3:5], "big") for body in bodies] == [1, 2, 3, 4, 1, 2]
    assert b"".join(body[2:3] for body in bodies) == b"abcdab"
    assert [int.from_bytes(body[-14:-10], "big") for body in bodies] == [*range(6)]


@pytest.mark.parametrize("size", [1, 7, SIZE, SIZE + 1, 4 * SIZE])
def test_messages_settle_however_the_bytes_are_split(size: int) -> None:
    flow, packets = exact_flow()
    stream = b"".join(packets)
    for start in range(0, len(stream), size):
        flow.take_bytes(stream[start : start + size])
    assert (flow.due, flow.settled) == (0, 4)


def test_a_flow_gets_every_second_message() -> None:
    flow, packets = exact_flow(first=1, step=2)
    flow.take_bytes(packets[1] + packets[3])
    assert (flow.due, flow.settled) == (0, 2)
    with pytest.raises(ValueError, match="dealt"):
        Flow(Series(0, ["t"], burst=4), step=3)


LOST, DOUBLE, REORDERED, LATE = [0, 2], [0, 1, 1], [1, 0], [0, 1, 2, 3, 4]


@pytest.mark.parametrize("order", [LOST, DOUBLE, REORDERED, LATE, ["altered"]])
def test_faults_are_found_in_bytes_and_in_numbers(order: list[Any]) -> None:
    flow, packets = exact_flow()
    packets.append(packets[3])
    altered = packets[0][:-1] + b"!"
    with pytest.raises(Violation, match="instead of"):
        flow.take_bytes(b"".join(altered if n == "altered" else packets[n] for n in order))
    numbered = Flow(Series(3, ["t/0"], burst=4))
    numbered.publish(b"")
    with pytest.raises(Violation, match="publisher 3"):
        for n in order:
            numbered.take_number(9 if n == "altered" else n)
            numbered.settle()


# Publishers and subscribers, scripted and with slotmq


@pytest.fixture
def ends() -> Iterator[tuple[Client, socket.socket]]:
    """A client that has sent no CONNECT, and the broker's end of its connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = Client(listener.getsockname())
        broker, _ = listener.accept()
        yield client, broker
        client.close()
        broker.close()


Ends = tuple[Client, socket.socket]


def packet_ids(data: bytes, kind: int) -> list[int]:
    packets = codec.Reader().packets(data)
    return [int.from_bytes(body, "big") for first, body in packets if first >> 4 == kind]


def acks(kind: int, *ids: int) -> bytes:
    return b"".join(codec.ack(kind, packet_id) for packet_id in ids)


def publisher(client: Client, qos: int) -> tuple[Publisher, Flow]:
    series = Series(0, ["t"], qos=qos, burst=2, depth=1)
    flow = Flow(series)
    return Publisher(client, series, [flow], qos=qos, depth=1), flow


def test_a_publisher_waits_for_its_subscriber_and_its_acknowledgements(ends: Ends) -> None:
    client, broker = ends
    sender, flow = publisher(client, 1)
    sender.fill()
    size = len(broker.recv(4096))
    flow.settle(2)
    sender.fill()
    broker.sendall(acks(codec.PUBACK, 1, 2))
    sender.on_readable()
    assert sender.settled()
    sender.fill()
    assert len(broker.recv(4096)) == size, "a second burst was sent too early"


def test_a_publisher_completes_qos_2(ends: Ends) -> None:
    client, broker = ends
    sender, _ = publisher(client, 2)
    sender.fill()
    broker.recv(4096)
    broker.sendall(acks(codec.PUBREC, 1, 2))
    sender.on_readable()
    assert packet_ids(broker.recv(4096), codec.PUBREL) == [1, 2]
    assert not sender.settled()
    broker.sendall(acks(codec.PUBCOMP, 1, 2))
    sender.on_readable()
    assert sender.settled()


@pytest.mark.parametrize("ids", [(2,), (1, 1), (1, 2, 1)])
def test_a_publisher_refuses_wrong_acknowledgements(ends: Ends, ids: tuple[int, ...]) -> None:
    client, broker = ends
    sender, _ = publisher(client, 1)
    sender.fill()
    broker.sendall(acks(codec.PUBACK, *ids))
    with pytest.raises(Violation, match="packet id"):
        sender.on_readable()


@pytest.mark.parametrize(("qos", "answer"), [(0, 0), (1, codec.PUBACK), (2, codec.PUBREC)])
def test_a_subscriber_acknowledges_messages_and_finds_a_double_one(
    ends: Ends, qos: int, answer: int
) -> None:
    client, broker = ends
    series = Series(0, ["t"], qos=qos, burst=2)
    flow = Flow(series)
    receiver = Subscriber(client, {0: flow}, qos)
    burst = series.next_burst()
    flow.publish(burst)
    broker.sendall(burst)
    receiver.on_readable()
    if qos:
        assert packet_ids(broker.recv(4096), answer) == [1, 2]
    if qos == 2:
        assert flow.settled == 0
        broker.sendall(acks(codec.PUBREL, 1, 2))
        receiver.on_readable()
        assert packet_ids(broker.recv(4096), codec.PUBCOMP) == [1, 2]
    assert (flow.due, flow.settled) == (0, 2)
    broker.sendall(burst)
    with pytest.raises(Violation):
        receiver.on_readable()


@pytest.mark.parametrize(
    "shape",
    [
        Shape(2, 2),
        Shape(1, 3),
        Shape(3, 1, qos=1, burst=20, depth=1),
        Shape(1, 4, burst=20, depth=1, wildcards=40),
        Shape(2, 2, qos=1, burst=20, depth=1, level=5, alias=True),
    ],
)
def test_slotmq_delivers_everything(shape: Shape) -> None:
    with brokers.running(OURS) as running:
        pipeline = pipelined.connect(shape, running.address)
        deliveries = pipeline.run_bursts(3)
        assert pipeline.run(0.05) > 0
        pipeline.close()
    links = 1 if shape.wildcards else max(shape.publishers, shape.subscribers)
    assert deliveries == 3 * shape.depth * shape.burst * links
    with pytest.raises(ValueError, match="pairs"):
        Shape(2, 3)


# Figures


def cell(*costs: float) -> Cell:
    return Cell([{"cpu_us": cost} for cost in costs])


def test_a_ratio_is_the_median_of_the_rounds() -> None:
    row = medians({"a": cell(2, 3, 10), "mosquitto": cell(4, 4, 5), "b": Cell([], "it hung up")})
    assert row["a"] == {"cpu_us": 3, "cpu_us ratio": 0.75}
    assert row["mosquitto"]["cpu_us ratio"] == 1 and "b" not in row
    failed = Cell([{"cpu_us": 1}], "lost a message")
    assert medians({"a": cell(2), "mosquitto": failed}) == {"a": {"cpu_us": 2}}


def test_each_target_is_judged() -> None:
    names = {name for target in TARGETS for name in target.workloads.split()}
    assert names <= {each.name for each in WORKLOADS}
    results: Results = {
        "qos1": {CPYTHON: {"cpu_us": 9, "cpu_us ratio": 1.5}, "mosquitto": {"cpu_us": 6}}
    }
    assert [*judged(results)] == [("qos1", "cpu_us ratio", 1, {CPYTHON: 1.5})]
    tables = page.whole(results)
    assert "| qos1 | 9.00 (1.50) | 6.00 |" in tables
    assert "| qos1 | cpu_us ratio | 1.00 | - | 1.50 NOT MET |" in tables


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "-"), (0.0523, "0.05"), (9.96, "9.96"), (31.04, "31.0"), (1e4, "10,000")],
)
def test_numbers_are_short(value: float | None, shown: str) -> None:
    assert number(value) == shown


# Brokers that the user names

LISTENS = (
    "import socket, sys, time; s = socket.create_server(('127.0.0.1', int(sys.argv[1])));"
    "time.sleep(60)"
)


def test_a_named_broker_is_started_on_the_port() -> None:
    other = brokers.named(f'other={sys.executable} -c "{LISTENS}" {{port}}')
    with brokers.running(other) as running:
        assert running.broker.name == "other"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("other", "is not NAME=COMMAND"),
        ("=x {port}", "is not NAME=COMMAND"),
        ("other=sh -p 1883", "with {port} in the command"),
        ("other=sh 'x {port}", "No closing quotation"),
        ("mosquitto=sh {port}", "a name of the benchmark's own"),
        ("other=no-such-broker -p {port}", "no program 'no-such-broker'"),
    ],
)
def test_a_wrong_peer_is_refused(text: str, why: str) -> None:
    told = CliRunner().invoke(main, ["--peer", text])
    assert told.exit_code == 2
    assert "Invalid value for --peer" in told.output
    assert why in " ".join(told.output.split())


def test_a_peer_that_ends_at_once_is_a_failure_with_its_last_line() -> None:
    other = brokers.named("other=sh -c 'echo bad option {port} >&2; exit 3'")
    with pytest.raises(ToolError, match="ended at the start with status 3: bad option"), \
            brokers.running(other):  # fmt: skip
        pass


# Instructions

LOG = """\
==7== Command: micropython
SYSCALL[7,1](12) sys_brk ( 0x4021000 ) --> [pre-success] Success(0x4021000)
SYSCALL[7,1](  0) sys_read ( 4, 0x4cbc24b, 53 ) --> [async] ...
SYSCALL[7,1](0) ... [async] --> Success(0x35)
SYSCALL[7,1](228) sys_clock_gettime( 1, 0x1ffefff8c0 )[sync] --> Success(0x0)
SYSCALL[7,1](1) sys_write ( 4, 0x4cbc24b, 53 ) --> [async] ...
SYSCALL[7,1](1) ... [async] --> Success(0x35)
==7== Events    : Ir
==7== Collected : 2476379
"""


def test_system_calls_are_counted_once_without_clock_gettime() -> None:
    assert parse_log(LOG) == Count(2_476_379, 3)
    with pytest.raises(click.ClickException, match="no count"):
        parse_log("==7== valgrind: failed to start")


@pytest.mark.parametrize(
    ("count", "found"),
    [
        (Count(1000, 0.05), []),
        (Count(1049, 0.05), []),
        (Count(1051, 0.05), ["baseline"]),
        (Count(1000, 0.06), ["baseline"]),
        (Count(2001, 0.05), ["budget", "baseline"]),
        (Count(1000, 0.11), ["budget", "baseline"]),
    ],
)
def test_faults_name_the_bound(count: Count, found: list[str]) -> None:
    reported = faults(count, Count(2000, 0.1), Count(1000, 0.05))
    assert len(reported) == len(found)
    assert all(bound in line for bound, line in zip(found, reported, strict=True))
    assert faults(Count(1900, 0.1), Count(2000, 0.1), None) == []


def test_each_budget_counts_whole_bursts() -> None:
    for budget in BUDGETS.values():
        assert not budget.shape or budget.shape.depth == 1
        assert budget.bursts > 0


def test_a_stopped_process_finds_all_bytes_at_once() -> None:
    """Its one read returns both pieces that were written meanwhile."""
    read_all = "import os; os.write(1, b'.'); print(len(os.read(0, 100)))"
    with subprocess.Popen(
        [sys.executable, "-c", read_all], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdin and child.stdout
        assert child.stdout.read(1) == b"."
        broker = Sleeper(child.pid)
        broker.wait_until_asleep()
        with broker.stopped():
            for _ in range(2):
                os.write(child.stdin.fileno(), b"12345")
        assert child.stdout.read() == b"10\n"


def test_valgrind_counts_instructions(tmp_path: Path) -> None:
    command, environment = valgrind.command()
    options = ["--tool=callgrind", f"--callgrind-out-file={tmp_path}/out"]
    answer = subprocess.run(
        [*command, *options, "/bin/true"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    counted = answer.stderr.rpartition("Collected :")[2].split()[0]
    assert int(counted) > 1000
