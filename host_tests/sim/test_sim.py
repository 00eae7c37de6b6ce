"""A campaign of the simulator on both runtimes, which have the same traces."""

import os

from . import campaign
from .keeper import KINDS

SEEDS = 500
ON_MICROPYTHON = 48
ON_LITTLEFS = 24
JOBS = os.cpu_count() or 1
RECORDS = [f"cut_{kind.replace(' ', '_')}" for kind in KINDS]
# What a campaign must have met: tables that were full, time, sessions under stress, every
# medium of the journal, every kind of reboot, and every record in the midst of a cut.
MUST_SEE = {
    *("full_connections", "full_sessions", "full_subscriptions", "full_nodes", "full_retained"),
    *("full_messages", "full_deliveries", "full_received", "full_reassembly", "full_shares"),
    *("wrapped", "takeover", "evicted", "expired_session", "will_sent", "alias", "shared"),
    *("passed_on", "dropped", "sent_again"),
    *("medium_none", "medium_flash", "medium_littlefs", "medium_host", "interval"),
    *("reboot_off", "reboot_stop", "reboot_cut", "reboot_cut_start", "reboot_cut_stop"),
    *("rot", "rot_lost_some", "filled", "full_journal", "cut_switch", *RECORDS),
}


def test_nothing_is_broken_on_cpython() -> None:
    """In seeds that are real ones, and not worlds in which nothing happens."""
    outcomes = list(campaign.run_many("cpython", 0, SEEDS, campaign.STEPS, JOBS))
    failed = [str(outcome) for outcome in outcomes if outcome.failure]
    assert not failed, "\n".join(failed)
    assert sum(outcome.packets for outcome in outcomes) >= 300 * SEEDS
    assert sum(outcome.clients for outcome in outcomes) >= 3 * SEEDS
    assert campaign.totals(outcomes)["reboot"] >= SEEDS
    seen = campaign.totals(outcomes)
    assert {name for name in MUST_SEE if seen[name]} == MUST_SEE


def test_the_same_on_micropython() -> None:
    """Every byte at the same moment, and all that was counted."""
    wanted, found = (
        list(campaign.run_many(runtime, 0, ON_MICROPYTHON, campaign.STEPS, JOBS, at_once=12))
        for runtime in campaign.RUNTIMES
    )
    assert found == wanted
    assert not [str(outcome) for outcome in found if outcome.failure]


def test_journals_on_a_real_littlefs() -> None:
    """MicroPython's own, whose chip is cut in the midst of its operations."""
    outcomes = list(
        campaign.run_many(campaign.LITTLEFS, 0, ON_LITTLEFS, campaign.STEPS, JOBS, at_once=12)
    )
    assert not [str(outcome) for outcome in outcomes if outcome.failure]
    seen = campaign.totals(outcomes)
    assert seen["reboot_cut"] and seen["reboot_cut_start"] and seen["cut_message"]


def test_the_same_again() -> None:
    first, second = (list(campaign.run("cpython", 3, 2)) for _ in range(2))
    assert first == second
    assert first[0].hash != first[1].hash
