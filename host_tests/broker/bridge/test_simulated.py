"""Two simulated brokers with a bridge; host_tests/sim has many more seeds."""

from ...sim import campaign

SEEDS = 12


def test_nothing_is_lost_or_doubled() -> None:
    outcomes = list(campaign.run(campaign.BRIDGE, 1000, SEEDS))
    assert not [str(outcome) for outcome in outcomes if outcome.failure]
    events = campaign.totals(outcomes)
    assert events["reboot"] and events["sent_again"] and events["arrived"] > 100 * SEEDS
