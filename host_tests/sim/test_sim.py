"""A campaign of the simulator on both runtimes, which have the same traces."""

import os

import pytest

from . import campaign
from .campaign import Outcome

SEEDS = 240
ON_MICROPYTHON = 24
# What a campaign must have met: tables that were full, time, and sessions under stress.
MUST_SEE = {
    *("full_connections", "full_sessions", "full_subscriptions", "full_nodes", "full_retained"),
    *("full_messages", "full_deliveries", "full_received", "full_reassembly", "full_shares"),
    *("wrapped", "takeover", "evicted", "expired_session", "will_sent", "alias", "shared"),
    *("passed_on", "dropped", "sent_again"),
}


@pytest.fixture(scope="module")
def on_cpython() -> list[Outcome]:
    jobs = os.cpu_count() or 1
    return list(campaign.run_many("cpython", 0, SEEDS, campaign.STEPS, jobs))


def test_nothing_is_broken_on_cpython(on_cpython: list[Outcome]) -> None:
    failed = [str(outcome) for outcome in on_cpython if outcome.failure]
    assert not failed, "\n".join(failed)


def test_seeds_are_real_ones(on_cpython: list[Outcome]) -> None:
    """Not a world in which nothing happens."""
    assert sum(outcome.packets for outcome in on_cpython) >= 300 * SEEDS
    assert sum(outcome.clients for outcome in on_cpython) >= 3 * SEEDS
    seen = campaign.totals(on_cpython)
    assert {name for name in MUST_SEE if seen[name]} == MUST_SEE


def test_the_same_on_micropython(on_cpython: list[Outcome]) -> None:
    jobs = os.cpu_count() or 1
    found = campaign.run_many("micropython", 0, ON_MICROPYTHON, campaign.STEPS, jobs)
    assert list(found) == on_cpython[:ON_MICROPYTHON]


def test_the_same_again(on_cpython: list[Outcome]) -> None:
    assert list(campaign.run("cpython", 3, 2)) == on_cpython[3:5]
