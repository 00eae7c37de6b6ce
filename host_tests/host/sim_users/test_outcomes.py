"""Scenarios whose result can be calculated by hand."""

from typing import Any

import pytest

from slotmq_tools.scenario import report
from slotmq_tools.scenario.outcome import Outcome

from .conftest import Simulated, group, table

TEN = """
duration = "60 s"
[[clients]]
name = "sensor"
count = 10
publish = [{ topic = "t/{n}", rate = 1, qos = 1 }]
[[clients]]
name = "reader"
subscribe = ["t/+"]
subscribe_qos = 1
"""

# Quotas that let one session fill a table
SHARES = "[settings]\nmax_session_share = 100\nmax_offline_share = 100\n"
# 20 messages for a session that is offline and has a queue of 8
AWAY = """
duration = "60 s"
[limits]
queued = 8
[[clients]]
name = "sensor"
publish = [{ topic = "t", every = "1 s", qos = 1, first = "10 s", count = 20 }]
[[clients]]
name = "phone"
subscribe = ["t"]
subscribe_qos = 1
clean = false
online_for = "5 s"
offline_for = "300 s"
"""


def summary(outcome: Outcome) -> tuple[int, int, int, int]:
    """Due, delivered, lost, waiting."""
    lost = sum(outcome.causes.values())
    return outcome.total("due"), outcome.total("delivered"), lost, outcome.total("waiting")


def test_ten_a_second_for_a_minute(simulated: Simulated) -> None:
    outcome = simulated(TEN)
    assert summary(outcome) == (600, 600, 0, 0)
    assert outcome.total("late") == outcome.total("duplicates") == 0
    assert outcome.hits == []
    assert table(outcome, "connections")[1] == 11
    assert table(outcome, "subscriptions")[1] == 1
    assert "600 of 600" in report.text(outcome) and "(100 %)" in report.text(outcome)


def test_nothing_is_due_without_a_subscription(simulated: Simulated) -> None:
    outcome = simulated(TEN.replace("t/+", "u/+"))
    assert summary(outcome) == (0, 0, 0, 0)
    assert "No message was due" in report.summary(outcome)
    assert "%" not in report.summary(outcome)


@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("version", ["3.1", "3.1.1", "5.0"])
def test_everything_is_delivered(simulated: Simulated, qos: int, version: str) -> None:
    text = TEN.replace("qos = 1", f"qos = {qos}").replace(
        "count = 10", f'count = 10\nversion = "{version}"'
    )
    outcome = simulated(text, duration="9 s")
    assert summary(outcome) == (90, 90, 0, 0)
    assert outcome.total("late") == outcome.total("duplicates") == 0


def test_a_delay_is_twice_the_latency_and_a_turn(simulated: Simulated) -> None:
    outcome = simulated(TEN + '[links.lan]\nlatency = "40 ms"')
    delays = group(outcome, "reader").tally.delays
    assert sum(delays.values()) == 600
    assert set(delays) <= {80, 81}


def test_retransmissions(simulated: Simulated) -> None:
    """Delayed on none, one or both of the two links: a quarter, a half, a quarter."""
    text = TEN.replace("count = 10", "count = 1").replace("rate = 1", 'every = "3 s"')
    outcome = simulated(text + '[links.lan]\nloss = 50\nretransmission = "1 s"', duration="10 min")
    delays = group(outcome, "reader").tally.delays
    assert set(delays) == {10, 1010, 2010}
    assert 30 < delays[10] < 70 and 70 < delays[1010] < 130 and 30 < delays[2010] < 70


def test_late_messages(simulated: Simulated) -> None:
    slow = TEN + '[links.lan]\nlatency = "1100 ms"'
    assert simulated(slow).total("late") == 600
    assert simulated('late_after = "3 s"' + slow).total("late") == 0


def test_bandwidth(simulated: Simulated) -> None:
    """Ten messages of 25 bytes with headers of 40 do not fit 325 bytes per second."""
    reader = 'name = "reader"\nlink = "thin"'
    outcome = simulated(
        TEN.replace('name = "reader"', reader) + "[links.thin]\nbandwidth = 325\nlatency = 0"
    )
    tally = group(outcome, "reader").tally
    assert tally.late > 300
    assert tally.delays[max(tally.delays)] and max(tally.delays) > 5000


def case(
    name: str,
    text: str,
    counts: tuple[int, int, int, int],
    causes: dict[str, int] | None = None,
    limit: str = "",
    board: str = "HOST",
    **tables: tuple[int, ...],
) -> Any:
    """counts: due, delivered, lost, waiting; limit: the first that was reached; tables: the first
    of size, peak and refusals."""
    return pytest.param(text, counts, causes or {}, limit, board, tables, id=name)


QUEUED_MESSAGES = AWAY.replace("queued = 8", "messages = 5") + SHARES
OLDEST = AWAY.replace(
    "[limits]", '[settings]\nwhen_full = { deliveries = "drop_oldest" }\n[limits]'
)
RETAINED = TEN.replace("qos = 1 }", "qos = 1, retain = true }") + "[limits]\nretained = 4"
SHARED = 'count = 3\nversion = "5.0"\nsubscribe = ["$share/g/t/+"]'
# 32 blocks of 64 bytes have space for three messages of 601 bytes with their topic
LONG = AWAY.replace("queued = 8", "message_bytes = 2048")
LONG = LONG.replace("count = 20", "count = 20, payload = 600") + SHARES


@pytest.mark.parametrize(
    ("text", "counts", "causes", "limit", "board", "tables"),
    [
        case("nothing due after a clean session", AWAY.replace("clean = false", "clean = true"),
             (0, 0, 0, 0)),
        case("a queue of 8", AWAY, (20, 0, 12, 8), {"queued": 12}, "queued",
             queued=(8, 8, 0), deliveries=(60_000, 8, 12)),
        case("the oldest dropped", OLDEST, (20, 0, 12, 8), {"oldest": 12}, "queued"),
        case("sent on return", AWAY.replace('"300 s"', '"40 s"'), (20, 8, 12, 0), {"queued": 12},
             "queued"),
        case("QoS 0 offline", AWAY.replace("qos = 1, first", "qos = 0, first"), (20, 0, 20, 0),
             {"offline": 20}),
        case("messages", QUEUED_MESSAGES, (20, 0, 15, 5), {"messages": 15}, "messages",
             messages=(5, 5, 15)),
        case("message bytes", LONG, (20, 0, 17, 3), {"message_bytes": 17}, "message_bytes",
             "RPI_PICO_W", message_bytes=(2048, 30 * 64)),
        case("enough deliveries", AWAY.replace("queued = 8", "deliveries = 100\ninflight = 100"),
             (20, 0, 0, 20)),
        case("half of the deliveries", AWAY.replace("queued = 8", "deliveries = 6\ninflight = 6"),
             (20, 0, 17, 3), {"queued": 17}, "queued"),
        case("subscriptions",
             TEN.replace('["t/+"]', '["a", "b", "t/+"]') + "[limits]\nsubscriptions = 2",
             (600, 0, 600, 0), {"subscriptions": 600}, "subscriptions"),
        case("nodes", TEN.replace('"t/+"', '"a/b/c/d/e"') + "[limits]\nnodes = 3", (0, 0, 0, 0),
             None, "nodes"),
        case("retained", RETAINED, (600, 600, 0, 0), None, "retained", retained=(4, 4, 60 * 6)),
        case("shared", TEN.replace('subscribe = ["t/+"]', SHARED), (600, 600, 0, 0)),
    ],
)  # fmt: skip
def test_counts(
    simulated: Simulated,
    text: str,
    counts: tuple[int, ...],
    causes: dict[str, int],
    limit: str,
    board: str,
    tables: dict[str, tuple[int, ...]],
) -> None:
    outcome = simulated(text, board=board)
    assert summary(outcome) == counts
    assert outcome.causes == causes
    assert "".join(hit.limit for hit in outcome.hits[:1]) == limit
    assert outcome.total("duplicates") == 0
    for name, figures in tables.items():
        assert table(outcome, name)[: len(figures)] == figures, name


def test_the_first_hit_has_its_client_and_its_time(simulated: Simulated) -> None:
    outcome = simulated(AWAY)
    assert [(hit.limit, hit.who, hit.ms) for hit in outcome.hits] == [("queued", "phone", 18005)]
    returned = simulated(AWAY.replace('"300 s"', '"40 s"'))
    assert returned.total("late") == 8


def test_more_clients_than_connections(simulated: Simulated) -> None:
    """Three of ten connect besides the reader; the others are refused again and again."""
    outcome = simulated(TEN.replace("count = 10", 'count = 10\nstart = "5 s"'), board="RPI_PICO_W")
    assert table(outcome, "connections")[:2] == (4, 4)
    hit = outcome.hits[0]
    assert hit.limit == "connections" and hit.who.startswith("sensor-")
    assert group(outcome, "sensor").refused > 50
    assert group(outcome, "reader").tally.delivered == 3 * 55
    assert outcome.total("waiting") == outcome.total("due") - 3 * 55
    assert "connections at 0:00:05" in report.text(outcome)
