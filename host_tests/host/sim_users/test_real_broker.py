"""The simulated network compared with a real one: the same scenario, played over sockets to a
broker process, delivers and drops the same number of messages.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from slotmq_tools.scenario.model import Clients, Publish, Scenario
from slotmq_tools.scenario.outcome import simulate
from slotmq_tools.scenario.read import read

from ...broker.wire import codec
from ...broker.wire.client import Client
from ...broker.wire.process import BrokerProcess
from .conftest import table
from .test_outcomes import AWAY, TEN

COMES_BACK = AWAY.replace('"300 s"', '"40 s"')
GOODBYE = b"\xe0\0"
DROP_OLDEST = '[settings]\nwhen_full = { deliveries = "drop_oldest" }\n'
SMALL = TEN.replace('"60 s"', '"6 s"')


@pytest.mark.parametrize(
    "text",
    [
        SMALL,
        SMALL.replace("qos = 1", "qos = 2"),
        SMALL.replace("count = 10", 'count = 10\nstart = "1 s"') + "[limits]\nconnections = 4",
        SMALL.replace("qos = 1 }", "qos = 1, retain = true }") + "[limits]\nretained = 3",
        COMES_BACK,
        COMES_BACK.replace("qos = 1, first", "qos = 0, first"),
        COMES_BACK.replace("queued = 8", "messages = 5"),
        COMES_BACK.replace("queued = 8", "deliveries = 6\ninflight = 6"),
        COMES_BACK.replace("[limits]", f"{DROP_OLDEST}[limits]"),
    ],
    ids=["small", "qos 2", "connections", "retained", "queued", "qos 0 away",
         "messages", "deliveries", "drop oldest"],
)  # fmt: skip
def test_a_broker_process_gives_the_same_counts(tmp_path: Path, text: str) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text(text)
    scenario = read(file)
    simulated = simulate(scenario, lambda percent: None)
    with started(scenario, tmp_path) as process:
        delivered, refused = play(scenario, process)
    assert delivered == simulated.total("delivered")
    for name in ("messages", "deliveries", "retained", "received", "subscriptions"):
        assert refused[name] == table(simulated, name)[2], name
    assert bool(refused["connections"]) == bool(table(simulated, "connections")[2])


@contextmanager
def started(scenario: Scenario, folder: Path) -> Iterator[BrokerProcess]:
    """A broker with the scenario's limits and settings."""
    lines = [f"limit {name} {value}" for name, value in scenario.limits.items()]
    policies = scenario.settings.get("when_full", {}).items()
    lines += [f"when_full {name} {policy}" for name, policy in policies]
    process = BrokerProcess("cpython", "\n".join(["", *lines, ""]), folder)
    try:
        yield process
    finally:
        process.stop()


def play(scenario: Scenario, process: BrokerProcess) -> tuple[int, dict[str, int]]:
    """How many messages were delivered, and what each table refused."""
    player = Player(scenario, process)
    try:
        player.play()
        return player.delivered, player.refused()
    finally:
        for client in player.clients:
            client.sock.close()


class Player:
    """All clients connect, some leave, all messages are published, those that left return."""

    def __init__(self, scenario: Scenario, process: BrokerProcess) -> None:
        self.scenario = scenario
        self.address = process.address
        self.delivered = 0
        self.clients: list[Client] = []

    def play(self) -> None:
        groups = sorted(self.scenario.clients, key=lambda group: group.start)
        there = [
            (group, n, self.connect(group, n))
            for group in groups
            for n in range(1, group.count + 1)
        ]
        for group, _, client in there:
            if client and group.online_for:
                client.send(GOODBYE)
                client.expect_end()
        for group, n, client in there:
            for source in group.publish if client else ():
                self.publish(client, group, source, n)
                self.read(there)
        self.read(there)
        for group, n, _ in there:
            if group.online_for:
                self.read([(group, n, self.connect(group, n))])

    def client(self) -> Client:
        self.clients.append(Client(self.address))
        return self.clients[-1]

    def connect(self, group: Clients, number: int) -> Client | None:
        client = self.client()
        packet = codec.connect(group.client_id(number), clean=group.clean)
        if client.connect(packet).code:
            client.expect_end()
            return None
        if group.subscribe:
            client.subscribe(*group.subscribe, qos=group.subscribe_qos)
        return client

    def publish(self, client: Client | None, group: Clients, source: Publish, number: int) -> None:
        assert client
        count = source.count or round((self.scenario.duration - group.start) / source.period)
        for _ in range(count):
            client.publish(
                source.topic.replace("{n}", str(number)),
                bytes(source.payload), source.qos, retain=source.retain,
            )  # fmt: skip

    def read(self, there: list[tuple[Clients, int, Client | None]]) -> None:
        for group, _, client in there:
            if client and client.sock.fileno() >= 0 and group.subscribe:
                self.delivered += len(client.receive_all())

    def refused(self) -> dict[str, int]:
        there = next(client for client in self.clients if client.sock.fileno() >= 0)
        there.send(GOODBYE)  # frees a connection
        there.expect_end()
        client = self.client()
        client.connect(codec.connect("looks"))
        client.subscribe("$SYS/broker/slots/+/refused")
        found = client.publishes()
        return {message.topic.split("/")[3]: int(message.payload) for message in found}
