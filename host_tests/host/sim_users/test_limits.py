"""Scenarios that reach each limit, and the advice for it."""

from dataclasses import replace

import pytest

from slotmq_tools.scenario import report
from slotmq_tools.scenario.message_state import CAUSES
from slotmq_tools.scenario.usage import MORE, TABLES, Hit

from .conftest import Simulated, group, table
from .test_outcomes import AWAY, LONG, TEN, summary


def test_a_busy_connection(simulated: Simulated) -> None:
    """50 messages of 500 bytes at once: a socket of 4,000 bytes and a buffer of 640 take 8."""
    text = """
duration = "20 s"
[[clients]]
name = "sensor"
publish = [{ topic = "t", every = "30 s", first = 0, burst = 50, payload = 500 }]
[[clients]]
name = "reader"
subscribe = ["t"]
link = "thin"
[links.thin]
bandwidth = 1000
buffer = 4000
"""
    outcome = simulated(text, board="RPI_PICO_W")
    due, delivered, lost, waiting = summary(outcome)
    assert (due, delivered + lost, waiting) == (50, 50, 0)
    assert 8 <= delivered <= 10
    assert outcome.causes == {"busy": lost}
    assert [hit.limit for hit in outcome.hits] == ["tx_bytes"]


def test_a_removed_session(simulated: Simulated) -> None:
    """One of four slots is the sensor's; three clients connect while the phone is offline."""
    text = (
        AWAY.replace("queued = 8", "sessions = 4")
        + """
[[clients]]
name = "other"
count = 3
clean = false
start = "7 s"
sleeps = true
subscribe = ["x"]
publish = [{ topic = "y", every = "1 h", first = "7 s" }]
"""
    )
    outcome = simulated(text, board="RPI_PICO_W")
    assert group(outcome, "phone").tally.lost == {"sessions": 20}
    assert outcome.hits[0].limit == "sessions"


def test_slow_qos_2(simulated: Simulated) -> None:
    """A client may have 20 messages in flight; each needs two round trips of a second."""
    text = TEN.replace("count = 10", "count = 1").replace(
        "rate = 1, qos = 1", "rate = 40, qos = 2"
    )
    outcome = simulated(text + '[links.lan]\nlatency = "500 ms"', duration="10 s")
    assert table(outcome, "received")[1] == 20
    assert outcome.hits == []
    assert outcome.total("late") > 0


def test_long_packets_in_pieces_wait_for_one_another(simulated: Simulated) -> None:
    text = TEN.replace("qos = 1 }", 'qos = 1, payload = "1900 B", first = 0 }')
    text = text.replace("count = 10", "count = 3").replace('"60 s"', '"10 s"')
    outcome = simulated(
        text + "[limits]\nreassembly = 1\nmessage_bytes = 12544", board="RPI_PICO_W"
    )
    assert table(outcome, "reassembly")[1] == 1
    assert summary(outcome)[2] == 0


@pytest.mark.parametrize(
    "limit", [*TABLES, *MORE, "retained_name_bytes", "tx_bytes", "max_connections"]
)
def test_there_is_advice_for_each(limit: str) -> None:
    assert limit == "inflight" or report.advice(limit)


def test_the_advice_says_what_twice_as_much_needs(simulated: Simulated) -> None:
    assert "2,112 bytes" in report.text(simulated(LONG, board="RPI_PICO_W"))


def test_every_cause_is_explained() -> None:
    assert all(CAUSES.values())
    assert {"messages", "message_bytes", "deliveries", "queued"} <= CAUSES.keys()


def test_the_advice_is_for_the_limit_that_lost_most(simulated: Simulated) -> None:
    outcome = simulated(TEN, board="RPI_PICO_W")
    assert outcome.hits[0].limit == "connections" and outcome.causes["connections"] > 100
    assert "The first limit that was reached: connections" in report.summary(outcome)
    earlier = replace(outcome, hits=[Hit("queued", 1000, "phone"), *outcome.hits])
    said = report.summary(earlier)
    assert "The limit that lost most: connections at " in said and "sleeps = true" in said
    assert "Reached, too: queued at 0:00:01 (phone)" in said and "needs no RAM" not in said
