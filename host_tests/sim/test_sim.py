"""A campaign of the simulator on both runtimes, which have the same traces."""

import os
import re
import sys
from dataclasses import replace

import pytest
from click.testing import CliRunner

from . import campaign, coverage_check
from .__main__ import main

SEEDS = 500
ON_MICROPYTHON = 48
ON_LITTLEFS = 24
ON_FAT = 40
BRIDGES = 150
BRIDGES_ON_MICROPYTHON = 8
JOBS = os.cpu_count() or 1

pytestmark = pytest.mark.timeout(900)  # a minute, where nothing else runs


@pytest.mark.parametrize("clients", ["x", "0,", "0,-1", ",", "0 1"])
def test_clients_are_numbers(clients: str) -> None:
    done = CliRunner().invoke(main, ["--clients", clients])
    assert done.exit_code == 2
    assert f"0,2,3, not {clients}" in done.output


def test_nothing_is_broken_on_cpython() -> None:
    """Also: the seeds are busy enough, and together reach every case."""
    outcomes = list(campaign.run_many("cpython", 0, SEEDS, campaign.STEPS, JOBS))
    failed = [str(outcome) for outcome in outcomes if outcome.failure]
    assert not failed, "\n".join(failed)
    assert SEEDS >= coverage_check.ENOUGH
    assert coverage_check.gaps(outcomes) == []


def test_a_campaign_in_which_little_happens_has_gaps() -> None:
    outcomes = [
        campaign.Outcome(n, 100, packets=299, clients=3) for n in range(coverage_check.ENOUGH)
    ]
    gaps = coverage_check.gaps(outcomes)
    assert [re.findall(r"[\d.]+|packets|reboots", gap) for gap in gaps[:2]] == [
        ["299.00", "packets", "300"],
        ["0.00", "reboots", "1"],
    ]
    assert len(gaps) == 2 + len(coverage_check.MUST_SEE)
    assert coverage_check.gaps(outcomes[1:]) == []  # too few seeds to judge


def _without_ways(outcome: campaign.Outcome) -> campaign.Outcome:
    events = {name: n for name, n in outcome.events.items() if not name.startswith("fast_")}
    return replace(outcome, events=events)


def test_the_same_on_micropython() -> None:
    """The same bytes at the same time, and the same event counts. A packet may take the fast path
    on one runtime and the handlers on the other."""
    wanted, found = (
        list(campaign.run_many(runtime, 0, ON_MICROPYTHON, campaign.STEPS, JOBS, at_once=4))
        for runtime in (campaign.PLAIN, "micropython")
    )
    assert [_without_ways(each) for each in found] == [_without_ways(each) for each in wanted]
    assert not [str(outcome) for outcome in found if outcome.failure]


def test_two_brokers_with_a_bridge() -> None:
    """Also: the seeds together reach every case, and MicroPython has as many packets and events.

    (Not the same traces: when a client gets its own QoS 0 message depends on which routes a
    runtime remembers, if a bridge is among the receivers.)"""
    outcomes = list(campaign.run_many(campaign.BRIDGE, 0, BRIDGES, campaign.STEPS, JOBS, 25))
    assert not [str(outcome) for outcome in outcomes if outcome.failure]
    events = campaign.totals(outcomes)
    assert not [name for name in sorted(coverage_check.MUST_SEE_OF_BRIDGE) if not events[name]]
    same = campaign.run_many(
        campaign.BRIDGE_32, 0, BRIDGES_ON_MICROPYTHON, campaign.STEPS, JOBS, 4
    )
    assert [replace(each, hash="") for each in same] == [
        replace(each, hash="") for each in outcomes[:BRIDGES_ON_MICROPYTHON]
    ]


def test_journals_on_a_real_littlefs() -> None:
    """On MicroPython's own littlefs. Power cuts happen within operations of its chip."""
    outcomes = list(
        campaign.run_many(campaign.LITTLEFS, 0, ON_LITTLEFS, campaign.STEPS, JOBS, at_once=4)
    )
    assert not [str(outcome) for outcome in outcomes if outcome.failure]
    events = campaign.totals(outcomes)
    assert events["reboot_cut"] and events["reboot_cut_start"] and events["cut_message"]
    assert events["rot"] and events["filled"]


def test_fat_breaks_promises_by_power_cuts_and_by_nothing_else() -> None:
    """Why the broker refuses it (test_medium_file_cuts.py, test_location.py)."""
    outcomes = list(campaign.run_many(campaign.FAT, 0, ON_FAT, campaign.STEPS, JOBS, at_once=10))
    failed = [outcome.failure for outcome in outcomes if outcome.failure]
    assert len(failed) > ON_FAT // 5
    lost = tuple(
        f"PromiseBroken: {text}"
        for text in ("after a reboot,", "something is lost, and the log", "the log reports damage")
    )
    assert not [why for why in failed if not why.startswith(lost)]
    whole = campaign.totals([outcome for outcome in outcomes if not outcome.failure])
    assert whole["reboot_stop"] and whole["reboot_off"]


def test_a_failure_is_replayed_where_it_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command names the runtime on which the seed failed, before and after shrinking."""
    script = "import sys; print('FAIL', sys.argv[1], 'why')"
    monkeypatch.setattr(campaign, "_command", lambda _: [sys.executable, "-c", script])
    monkeypatch.setattr(campaign, "environment", lambda _: dict(os.environ))
    plain = "python -m host_tests.sim --first 7 --seeds 1 --steps "
    wanted = {"cpython": "", "micropython": " --runtime micropython"}
    wanted["littlefs"] = " --runtime littlefs"
    for runtime, where in wanted.items():
        (failed,) = campaign.run(runtime, 7, 1)
        assert failed.failure == "why"
        assert failed.replay == plain + "100" + where
        shrunk = campaign.shrink(runtime, failed)
        assert shrunk.replay == f"{plain}1 --clients 7{where}"


def test_the_same_again() -> None:
    first, second = (list(campaign.run("cpython", 3, 2)) for _ in range(2))
    assert first == second
    assert first[0].hash != first[1].hash
