"""Clients that disconnect and return: outages, wills, sleep, retained messages; and power failures
of the board, with and without persistence."""

import pytest

from slotmq_tools.scenario import report

from .conftest import Simulated, group, table
from .test_outcomes import AWAY, SHARES, TEN, summary

OUTAGE = (
    TEN.replace('name = "reader"', 'name = "reader"\nclean = false\nlink = "wifi"')
    + """
[links.wifi]
outage_first = "20 s"
outage_for = "10 s"
"""
)


def test_a_persistent_session_survives_an_outage(simulated: Simulated) -> None:
    outcome = simulated(OUTAGE)
    assert summary(outcome) == (600, 600, 0, 0)
    assert 80 <= outcome.total("late") <= 100, "ten a second, for ten seconds but the last two"
    assert group(outcome, "reader").breaks == 1


def test_a_clean_session_does_not(simulated: Simulated) -> None:
    """Messages of the ten seconds are lost: queued ones, and those without a session."""
    outcome = simulated(OUTAGE.replace("clean = false", "clean = true"))
    due, delivered, lost, _ = summary(outcome)
    assert (due, delivered + lost) == (600, 600)
    assert 98 <= lost <= 105
    assert set(outcome.causes) <= {"receiver_lost", "offline"}


def test_a_publisher_without_a_connection(simulated: Simulated) -> None:
    """QoS 0 is lost in the outage, QoS 1 is sent after it."""
    text = TEN.replace('name = "sensor"', 'name = "sensor"\nlink = "wifi"')
    text += '[links.wifi]\noutage_first = "20 s"\noutage_for = "10 s"'
    outcome = simulated(text)
    assert summary(outcome) == (600, 600, 0, 0)
    assert outcome.total("late") >= 80
    outcome = simulated(text.replace("qos = 1", "qos = 0"))
    assert outcome.causes["publisher"] == pytest.approx(100, abs=2)


def test_a_will_after_an_outage(simulated: Simulated) -> None:
    """With a keep-alive of 4 s the broker publishes the will after 6 s."""
    will = 'keep_alive = "4 s"\nlink = "wifi"\nwill = { topic = "t/gone" }\n'
    text = TEN.replace("count = 10\n", will) + '[links.wifi]\noutage_first = "20 s"\n'
    outcome = simulated(text + 'outage_for = "30 s"')
    assert outcome.total("wills") == 1


def test_sleeping_sensors_share_the_connections(simulated: Simulated) -> None:
    """Twelve sensors and a reader; a Pico W accepts four clients at a time."""
    text = TEN.replace("count = 10", "count = 12\nsleeps = true").replace(
        "rate = 1", 'every = "20 s"'
    )
    outcome = simulated(text, board="RPI_PICO_W")
    assert summary(outcome)[:2] == (36, 36)
    assert table(outcome, "connections")[1] <= 4


def test_retained_messages_are_not_counted_twice(simulated: Simulated) -> None:
    late = TEN.replace("qos = 1 }", "qos = 1, retain = true }").replace(
        'name = "reader"', 'name = "reader"\nstart = "30 s"'
    )
    outcome = simulated(late)
    assert group(outcome, "reader").tally.retained == 10
    assert summary(outcome)[0] == summary(outcome)[1] == pytest.approx(295, abs=10)
    assert outcome.total("duplicates") == 0


def test_the_same_seed_gives_the_same_result(simulated: Simulated) -> None:
    text = OUTAGE + 'loss = 5\njitter = "50 ms"'
    first, second, other = (simulated(text, seed=seed) for seed in (7, 7, 8))
    assert first.as_json() == second.as_json()
    assert first.trace != other.trace
    assert first.total("delivered") == other.total("delivered") == 600


# After the 20 messages, while the phone is offline; it returns and gets what was restored.
CUT = 'power_cut_first = "35 s"\n' + AWAY.replace('"300 s"', '"40 s"')
KEPT = '[persistence]\nsize = "1 MB"\nmedium = "{}"\n'


def test_without_persistence_queued_messages_are_lost(simulated: Simulated) -> None:
    outcome = simulated(CUT, board="RPI_PICO_W")
    assert summary(outcome) == (20, 0, 20, 0)
    assert outcome.causes == {"queued": 12, "power": 8}
    assert outcome.power_cuts == 1
    assert "persistence false" in report.text(outcome)


@pytest.mark.parametrize("medium", ["flash", "littlefs"])
def test_with_persistence_all_are_delivered(simulated: Simulated, medium: str) -> None:
    outcome = simulated(CUT + KEPT.format(medium), board="RPI_PICO_W")
    assert summary(outcome) == (20, 8, 12, 0)
    assert outcome.causes == {"queued": 12}
    assert outcome.total("duplicates") == 0


def test_figures_before_the_power_failure_are_included(simulated: Simulated) -> None:
    outcome = simulated(CUT, board="RPI_PICO_W")
    assert table(outcome, "deliveries")[1:] == (8, 12)
    assert table(outcome, "connections")[1] == 2
    assert [hit.limit for hit in outcome.hits] == ["queued"]


@pytest.mark.parametrize("qos", [1, 2])
def test_a_stream_goes_on(simulated: Simulated, qos: int) -> None:
    """Ten messages per second, and 5 s without a broker: all are delivered, QoS 2 once."""
    text = TEN.replace('name = "reader"', 'name = "reader"\nclean = false')
    text = text.replace("qos = 1", f"qos = {qos}")
    text += KEPT.format("flash") + "[limits]\nmessages = 200\nmessage_bytes = 16384\n"
    text += "max_packet = 2048\ndeliveries = 200\ntopic_bytes = 64\nclient_id_bytes = 64\n"
    text += (
        "sessions = 16\nconnections = 12\nsubscriptions = 20\nretained = 9\nroute_entries = 64\n"
    )
    text += "received = 64\n" + SHARES
    outcome = simulated('power_cut_every = "1 min"\npower_cut_first = "3 s"\n' + text)
    assert summary(outcome) == (600, 600, 0, 0)
    assert 50 < outcome.total("late") < 100
    assert outcome.total("duplicates") <= (5 if qos == 1 else 0)
    assert group(outcome, "sensor").breaks == 10


def test_qos_0_is_lost_during_the_power_failure(simulated: Simulated) -> None:
    text = 'power_cut_first = "20 s"\n' + TEN.replace("qos = 1", "qos = 0")
    outcome = simulated(text)
    assert sum(outcome.causes.values()) == pytest.approx(80, abs=15)
    assert set(outcome.causes) <= {"publisher_lost", "publisher", "offline", "receiver_lost"}
