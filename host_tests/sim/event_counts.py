# seen.py - how often things happened that a campaign must have seen.

from ..broker.unit.support.tables import space


class EventCounts:
    """How often things happened that a campaign must have seen."""

    def __init__(self):
        self.counts = {}

    def __getitem__(self, what):
        return self.counts.get(what, 0)

    def __setitem__(self, what, count):
        self.counts[what] = count


def note_full(world):
    """Which tables this broker had full, and what else a campaign must have seen."""
    broker = world.broker
    subs = broker.subscriptions
    events = world.events
    events[f"medium {world.plan.medium or 'none'}"] = 1
    events["interval"] = 1 if world.plan.medium and not world.plan.always else 0
    events["wrapped"] = 1 if world.clock.wrapped() else 0
    events["full connections"] += broker.conns.refused
    events["full sessions"] += broker.sessions.refused
    events["full subscriptions"] += subs.refused
    events["full nodes"] += subs.nodes_refused
    events["full retained"] += broker.retained.refused
    events["full messages"] += broker.messages.refused
    events["full deliveries"] += broker.deliveries.refused
    events["full received"] += broker.sessions.ids_refused
    events["full reassembly"] += broker.conns.reassembly[2]
    events["full shares"] += broker.five.shares.refused if broker.five else 0


def note_full_space(world):
    """Which rooms for bytes have none left now: of names, of topics, of messages."""
    broker = world.broker
    events = world.events
    events["full node names"] += not space(broker.subscriptions.nodes)
    events["full retained names"] += not space(broker.retained.names)
    events["full message bytes"] += not broker.messages.arena.free_blocks()
    events["full aliases"] += _connections_without_alias(broker.five.aliases) if broker.five else 0


def _connections_without_alias(aliases):
    # How many have a topic behind each alias that their client takes.
    full = 0
    for conn, offered in enumerate(aliases.offered):
        first = conn * aliases.most
        full += bool(offered and all(aliases.outward_len[first : first + offered]))
    return full
