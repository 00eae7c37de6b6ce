"""A campaign of the simulator on both runtimes, which have the same traces."""

import os

from . import campaign

SEEDS = 300
ON_MICROPYTHON = 24
JOBS = os.cpu_count() or 1
# What a campaign must have met: tables that were full, time, and sessions under stress.
MUST_SEE = {
    *("full_connections", "full_sessions", "full_subscriptions", "full_nodes", "full_retained"),
    *("full_messages", "full_deliveries", "full_received", "full_reassembly", "full_shares"),
    *("wrapped", "takeover", "evicted", "expired_session", "will_sent", "alias", "shared"),
    *("passed_on", "dropped", "sent_again", "reboot"),
}


def test_nothing_is_broken_on_cpython() -> None:
    """In seeds that are real ones, and not worlds in which nothing happens."""
    outcomes = list(campaign.run_many("cpython", 0, SEEDS, campaign.STEPS, JOBS))
    failed = [str(outcome) for outcome in outcomes if outcome.failure]
    assert not failed, "\n".join(failed)
    assert sum(outcome.packets for outcome in outcomes) >= 300 * SEEDS
    assert sum(outcome.clients for outcome in outcomes) >= 3 * SEEDS
    seen = campaign.totals(outcomes)
    assert {name for name in MUST_SEE if seen[name]} == MUST_SEE


def test_the_same_on_micropython() -> None:
    """Every byte at the same moment, and all that was counted."""
    wanted, found = (
        list(campaign.run_many(runtime, 0, ON_MICROPYTHON, campaign.STEPS, JOBS))
        for runtime in campaign.RUNTIMES
    )
    assert found == wanted
    assert not [str(outcome) for outcome in found if outcome.failure]


def test_the_same_again() -> None:
    first, second = (list(campaign.run("cpython", 3, 2)) for _ in range(2))
    assert first == second
    assert first[0].hash != first[1].hash
