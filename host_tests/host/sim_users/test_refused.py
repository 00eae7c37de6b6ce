"""A refusal by a setting is reported with the name of the setting, not as a limit that was reached
or a connection that broke.
"""

import pytest

from slotmq_tools.scenario import report
from slotmq_tools.scenario.message_state import CAUSES
from slotmq_tools.scenario.refusal import CLIENTS

from .conftest import Simulated, group
from .test_outcomes import TEN, summary

# A publisher and a reader; each test changes one of them, or the settings
ONE = TEN.replace("count = 10\n", "").replace('"60 s"', '"20 s"')
PUBLISHER = 'name = "sensor"\n'


@pytest.mark.parametrize(
    ("setting", "who", "reported"),
    [
        ("max_keepalive = 30", 'name = "sensor"\nkeep_alive = 40\n', "max_keepalive"),
        ("max_keepalive = 30", 'name = "sensor"\nkeep_alive = 0\n', "max_keepalive"),
        (
            "mqtt31_client_id_max = 9",
            'name = "sensor-one"\nversion = "3.1"\nkeep_alive = 20\n',
            "mqtt31_client_id_max",
        ),
        ("max_qos = 1", 'name = "sensor"\nwill = { topic = "w", qos = 2 }\n', "max_qos"),
        (
            "max_qos = 1",
            'name = "sensor"\nversion = "5.0"\nwill = { topic = "w", qos = 2 }\n',
            "max_qos",
        ),
        (
            "retain_available = false",
            'name = "sensor"\nversion = "5.0"\nwill = { topic = "w", retain = true }\n',
            "retain_available",
        ),
        (
            "max_packet_size = 60",
            'name = "sensor"\nwill = { topic = "w", payload = 100 }\n',
            "max_packet_size",
        ),
        (
            "max_packet_size = 60",
            'name = "sensor"\nversion = "5.0"\nwill = { topic = "w", payload = 100 }\n',
            "max_packet_size",
        ),
    ],
    ids=["keep-alive", "none", "client-id", "will", "will-5", "retained-will", "long", "long-5"],
)
def test_a_refused_publisher(simulated: Simulated, setting: str, who: str, reported: str) -> None:
    """All QoS 0 messages are lost, and no limit was reached."""
    text = ONE.replace(PUBLISHER, who).replace("qos = 1 }", "qos = 0 }")
    text = text.replace('name = "reader"', 'name = "reader"\nkeep_alive = 20')
    outcome = simulated(text + f"[settings]\n{setting}")
    assert [hit.limit for hit in outcome.refusals] == [reported]
    assert outcome.refusals[0].who.startswith("sensor")
    assert outcome.hits == []
    assert summary(outcome) == (20, 0, 20, 0)
    assert outcome.causes == {"settings": 20}
    shown = " ".join(report.text(outcome).split())
    assert f"at the start (sensor{'-one' * ('one' in who)})" in shown
    assert f": settings.{reported} is " in shown
    assert "No limit" in shown
    assert outcome.as_json()["refused_by"][0]["setting"] == reported


def test_a_refused_reader(simulated: Simulated) -> None:
    text = ONE.replace(PUBLISHER, PUBLISHER + "keep_alive = 20\n")
    outcome = simulated(text + "[settings]\nmax_keepalive = 30")
    assert outcome.causes == {"settings": 20}
    assert outcome.refusals[0].who == "reader"
    assert outcome.hits == []


def test_more_clients_than_a_setting_allows(simulated: Simulated) -> None:
    text = ONE.replace('name = "reader"', 'name = "reader"\ncount = 3')
    outcome = simulated(text + "[settings]\nmax_connections = 2")
    assert [(hit.limit, hit.who) for hit in outcome.hits] == [("max_connections", "reader-2")]
    assert outcome.refusals == []
    assert outcome.causes == {"connections": 40}
    shown = report.text(outcome)
    assert "settings.max_connections is 2" in shown
    assert "limit connections is" not in shown


def test_more_sessions_than_the_table_holds(simulated: Simulated) -> None:
    """Four connections and four sessions; the session of an offline client is not removed."""
    away = (
        ONE.replace('name = "reader"', 'name = "reader"\nclean = false')
        + """
[[clients]]
name = "other"
count = 2
clean = false
start = "1 s"
online_for = "2 s"
offline_for = "300 s"
[[clients]]
name = "late"
start = "8 s"
subscribe = ["t/+"]
[limits]
sessions = 4
[settings.when_full]
sessions = "refuse"
"""
    )
    outcome = simulated(away, board="RPI_PICO_W")
    assert [hit.limit for hit in outcome.hits] == ["sessions"]
    late = group(outcome, "late").tally
    assert 11 <= late.due <= 12
    assert late.lost == {"full_table": late.due}


@pytest.mark.parametrize("qos", [0, 1])
@pytest.mark.parametrize("version", ["3.1.1", "5.0"])
@pytest.mark.parametrize(
    ("setting", "flags", "is_closed"),
    [
        ("message_size_limit = 100", "payload = 200", False),
        ("max_packet_size = 100", "payload = 200", True),
        ("retain_available = false", "retain = true", True),
    ],
    ids=lambda each: str(each).partition(" ")[0],
)
def test_refused_messages(
    simulated: Simulated, setting: str, flags: str, *, is_closed: bool, version: str, qos: int
) -> None:
    """They are lost whatever the QoS of the subscription; the reader stays connected."""
    text = ONE.replace("qos = 1 }", f"qos = {qos}, {flags} }}")
    text = text.replace(PUBLISHER, f'{PUBLISHER}version = "{version}"\n')
    for wanted in ("subscribe_qos = 1", "subscribe_qos = 0"):
        text = text.replace("subscribe_qos = 1", wanted)
        outcome = simulated(text + f"[settings]\n{setting}")
        assert summary(outcome) == (20, 0, 20, 0)
        assert outcome.causes == {setting.partition(" ")[0]: 20}
        assert bool(group(outcome, "sensor").breaks) == is_closed
        assert group(outcome, "reader").breaks == 0


def test_a_refused_qos(simulated: Simulated) -> None:
    outcome = simulated(ONE + "[settings]\nmax_qos = 0")
    assert outcome.causes == {"max_qos": 20}
    assert "settings.max_qos is lower" in report.text(outcome)
    outcome = simulated(ONE.replace("qos = 1 }", "qos = 0 }") + "[settings]\nmax_qos = 0")
    assert summary(outcome) == (20, 20, 0, 0)


def test_messages_in_transit_at_the_end_are_not_lost(simulated: Simulated) -> None:
    """300 bytes per second for messages of 500 bytes; no connection breaks."""
    text = ONE.replace("qos = 1 }", "qos = 0, payload = 500 }").replace(
        'name = "reader"', 'name = "reader"\nlink = "thin"'
    )
    outcome = simulated(text + "[links.thin]\nbandwidth = 300\nbuffer = 65536")
    due, delivered, lost, waiting = summary(outcome)
    assert (due, delivered + waiting, lost) == (20, 20, 0)
    assert waiting > 0


def test_each_setting_is_explained() -> None:
    assert all(CLIENTS.values())
    assert {"max_qos", "retain_available"} <= CLIENTS.keys() & CAUSES.keys()


def test_a_full_queue_for_qos_0(simulated: Simulated) -> None:
    """Retained ones of a client to itself are queued: ten together for a queue of four."""
    text = """
duration = "20 s"
[[clients]]
name = "own"
version = "5.0"
subscribe = ["t"]
publish = [{ topic = "t", every = "10 s", first = "2 s", burst = 10, retain = true }]
[limits]
queued = 4
inflight = 1
"""
    outcome = simulated(text, board="RPI_PICO_W")
    due, delivered, lost, waiting = summary(outcome)
    assert (due, delivered + lost, waiting) == (20, 20, 0)
    assert outcome.causes == {"queued": lost}
    assert lost > 0
