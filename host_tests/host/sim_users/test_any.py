"""Scenarios by chance, with tables that are full and links that break: whatever is due was
delivered, or is lost for a reason, or waits; and the broker's tables are in order at the end.
"""

import random

import pytest

from slotmq_tools.scenario import broker, traffic
from slotmq_tools.scenario.network import Network
from slotmq_tools.scenario.plan import Clients, Link, Persistence, Publish, Scenario, Will

from ...broker.unit.invariants import broken

SEEDS = 16


def scenario(seed: int) -> Scenario:
    """Groups, links, limits, settings and a journal that this seed decides."""
    chance = random.Random(seed)
    connections = chance.randint(2, 8)
    limits = {
        "connections": connections,
        "max_packet": 2048,
        "topic_bytes": 64,
        "tx_bytes": 640,
        "rx_bytes": 640,
        "inflight": chance.choice([1, 4, 16]),
        "sessions": connections + chance.randint(0, 4),
        "messages": chance.randint(3, 60),
        "message_bytes": chance.choice([2048, 8192]),
        "deliveries": chance.randint(16, 80),
        "queued": chance.randint(1, 24),
        "retained": chance.randint(0, 8),
        "subscriptions": chance.randint(1, 20),
        "nodes": chance.randint(4, 40),
        "reassembly": chance.randint(1, 2),
    }
    policies = {
        "messages": chance.choice(["drop_newest", "drop_oldest", "disconnect"]),
        "deliveries": chance.choice(["drop_newest", "drop_oldest"]),
        "sessions": chance.choice(["drop_empty", "drop_oldest", "refuse"]),
    }
    settings = {
        "when_full": policies,
        "queue_qos0_messages": chance.random() < 0.3,
        "qos2_delivery": chance.choice(["receive", "release"]),
        "upgrade_outgoing_qos": chance.random() < 0.2,
        "message_size_limit": chance.choice([0, 0, 100]),
    }
    medium = chance.choice(["flash", "littlefs"])
    return Scenario(
        duration=20_000,
        clients=tuple(_group(chance, at) for at in range(chance.randint(2, 5))),
        seed=seed,
        board="ESP32_GENERIC_S3",
        links={"lan": Link(), "wifi": _link(chance)},
        limits=limits,
        settings=settings,
        persistence=Persistence(medium, size=1 << 20) if chance.random() < 0.4 else None,
        power_cut_every=chance.choice([0, 6000]),
        power_off_for=chance.choice([1, 2000]),
    )


def _link(chance: random.Random) -> Link:
    return Link(
        latency=chance.choice([0, 5, 80]),
        jitter=chance.choice([0, 50]),
        bandwidth=chance.choice([0, 2000, 20_000]),
        loss=chance.choice([0, 10]),
        buffer=chance.choice([600, 5840]),
        outage_for=chance.choice([0, 1500]),
        outage_every=4000,
    )


def _group(chance: random.Random, at: int) -> Clients:
    level = chance.choice(["3.1", "3.1.1", "5.0"])
    filters = ["t/#", "t/+/x", "#", "t/{n}/x", "$SYS/#"] + ["$share/g/t/#"] * (level == "5.0")
    comes_and_goes = chance.random() < 0.3
    publish = tuple(_publish(chance) for _ in range(chance.randint(not at, 2)))
    return Clients(
        name=f"g{at}",
        count=chance.randint(1, 4),
        version=level,
        publish=publish,
        subscribe=tuple(chance.sample(filters, chance.randint(0, 3))),
        subscribe_qos=chance.randint(0, 2),
        clean=chance.random() < 0.5,
        keep_alive=chance.choice([0, 2000, 60_000]),
        will=Will("t/will", 20, chance.randint(0, 2)) if chance.random() < 0.4 else None,
        link=chance.choice(["lan", "wifi"]),
        start=chance.choice([0, 0, 5000]),
        sleeps=bool(publish) and not comes_and_goes and chance.random() < 0.3,
        online_for=3000 if comes_and_goes else 0,
        offline_for=4000 if comes_and_goes else 0,
        inflight=chance.choice([1, 20]),
    )


def _publish(chance: random.Random) -> Publish:
    return Publish(
        topic=chance.choice(["t/{n}/x", "t/y", "u"]),
        every=chance.choice([150, 1000]),
        payload=chance.choice([4, 20, 300, 1500]),
        qos=chance.randint(0, 2),
        retain=chance.random() < 0.3,
        burst=chance.choice([1, 1, 10]),
    )


@pytest.mark.parametrize("seed", range(SEEDS))
def test_nothing_is_unaccounted_for(seed: int) -> None:
    plan = scenario(seed)
    network = Network(plan, *broker.make(plan))
    traffic.begin(network)
    network.run(plan.duration + 5000)
    wrong = broken(network.broker)
    assert not wrong, wrong
    network.ledger.close()
    for tally in network.ledger.tallies.values():
        assert tally.due == tally.delivered + sum(tally.lost.values()) + tally.waiting
        assert sum(tally.took.values()) == tally.delivered
    assert sum(tally.published for tally in network.ledger.tallies.values()) > 0
