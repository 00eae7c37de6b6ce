"""Random scenarios with full tables and failing links. Every message that was due is delivered,
lost for a known cause, or queued; and at the end the broker's tables are consistent.
"""

import random
from typing import Any

import pytest

from slotmq_tools.scenario import broker_config, traffic
from slotmq_tools.scenario.model import Scenario
from slotmq_tools.scenario.network import Network

from ...broker.unit.support.invariants import broken

SEEDS = 16


def scenario(seed: int) -> Scenario:
    """The groups, links, limits, settings and journal of this seed."""
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
    persistence = {"medium": medium, "size": "1 MB"}
    made = Scenario.model_validate(
        {
            "duration": "20 s",
            "clients": [_group(chance, at) for at in range(chance.randint(2, 5))],
            "seed": seed,
            "board": "ESP32_GENERIC_S3",
            "links": {"wifi": _link(chance)},
            "limits": limits,
            "settings": settings,
            "persistence": persistence if chance.random() < 0.4 else None,
            "power_off_for": chance.choice(["1 ms", "2 s"]),
        }
    )
    # more often than a file may say
    return made.model_copy(update={"power_cut_every": chance.choice([None, 6000])})


def _link(chance: random.Random) -> dict[str, Any]:
    return {
        "latency": chance.choice(["0 ms", "5 ms", "80 ms"]),
        "jitter": chance.choice(["0 ms", "50 ms"]),
        "bandwidth": chance.choice([0, 2000, 20_000]),
        "loss": chance.choice([0, 10]),
        "buffer": chance.choice([600, 5840]),
        **chance.choice([{}, {"outage_for": "1500 ms", "outage_every": "4 s"}]),
    }


def _group(chance: random.Random, at: int) -> dict[str, Any]:
    level = chance.choice(["3.1", "3.1.1", "5.0"])
    filters = ["t/#", "t/+/x", "#", "t/{n}/x", "$SYS/#"] + ["$share/g/t/#"] * (level == "5.0")
    comes_and_goes = chance.random() < 0.3
    publish = [_publish(chance) for _ in range(chance.randint(not at, 2))]
    will = {"topic": "t/will", "qos": chance.randint(0, 2)}
    return {
        "name": f"g{at}",
        "count": chance.randint(1, 4),
        "version": level,
        "publish": publish,
        "subscribe": chance.sample(filters, chance.randint(0, 3)),
        "subscribe_qos": chance.randint(0, 2),
        "clean": chance.random() < 0.5,
        "keep_alive": chance.choice([0, 2, 60]),
        "will": will if chance.random() < 0.4 else None,
        "link": chance.choice(["lan", "wifi"]),
        "start": chance.choice([0, 0, 5]),
        "sleeps": bool(publish) and not comes_and_goes and chance.random() < 0.3,
        "online_for": 3 if comes_and_goes else None,
        "offline_for": 4 if comes_and_goes else None,
        "inflight": chance.choice([1, 20]),
    }


def _publish(chance: random.Random) -> dict[str, Any]:
    return {
        "topic": chance.choice(["t/{n}/x", "t/y", "u"]),
        "every": chance.choice(["150 ms", "1 s"]),
        "payload": chance.choice([4, 20, 300, 1500]),
        "qos": chance.randint(0, 2),
        "retain": chance.random() < 0.3,
        "burst": chance.choice([1, 1, 10]),
    }


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_message_is_accounted_for(seed: int) -> None:
    plan = scenario(seed)
    network = Network(plan, *broker_config.make(plan))
    traffic.schedule(network)
    network.run(plan.duration + 5000)
    wrong = broken(network.broker)
    assert not wrong, wrong
    network.tracker.close()
    for tally in network.tracker.tallies.values():
        assert tally.due == tally.delivered + sum(tally.lost.values()) + tally.waiting
        assert sum(tally.delays.values()) == tally.delivered
    assert sum(tally.published for tally in network.tracker.tallies.values()) > 0
