# seen.py - how often things happened that a campaign must have seen.

from ..broker.unit.tables import space


class Seen:
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
    seen = world.seen
    seen[f"medium {world.plan.medium or 'none'}"] = 1
    seen["interval"] = 1 if world.plan.medium and not world.plan.always else 0
    seen["wrapped"] = 1 if world.clock.wrapped() else 0
    seen["full connections"] += broker.conns.refused
    seen["full sessions"] += broker.sessions.refused
    seen["full subscriptions"] += subs.refused
    seen["full nodes"] += subs.nodes_refused
    seen["full retained"] += broker.retained.refused
    seen["full messages"] += broker.messages.refused
    seen["full deliveries"] += broker.deliveries.refused
    seen["full received"] += broker.sessions.ids_refused
    seen["full reassembly"] += broker.conns.reassembly[2]
    seen["full shares"] += broker.five.shares.refused if broker.five else 0


def note_rooms(world):
    """Which rooms for bytes have none left now: of names, of topics, of messages."""
    broker = world.broker
    seen = world.seen
    seen["full node names"] += not space(broker.subscriptions.nodes)
    seen["full retained names"] += not space(broker.retained.names)
    seen["full message bytes"] += not broker.messages.arena.free_blocks()
    seen["full aliases"] += _connections_without_alias(broker.five.aliases) if broker.five else 0


def _connections_without_alias(aliases):
    # How many have a topic behind each alias that their client takes.
    full = 0
    for conn, offered in enumerate(aliases.offered):
        first = conn * aliases.most
        full += bool(offered and all(aliases.outward_len[first : first + offered]))
    return full
