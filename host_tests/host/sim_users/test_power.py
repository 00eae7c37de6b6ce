"""Power failures of the board, with and without persistence."""

import pytest

from slotmq_tools.scenario import report

from .conftest import Simulated, group, table
from .test_outcomes import AWAY, SHARES, TEN, summary

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
