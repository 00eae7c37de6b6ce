# event_counts.py - count events that a campaign must have reached (see coverage_check.py).
from slotmq.fast import new_packet, next_packet
from slotmq.platform import heap, ondemand
from slotmq.platform.runtime import MICROPYTHON

from ..broker.unit.support.tables import space


class EventCounts:
    """A dict of counts, in which a missing name counts 0."""

    def __init__(self):
        self.counts = {}

    def __getitem__(self, what):
        return self.counts.get(what, 0)

    def __setitem__(self, what, count):
        self.counts[what] = count


class FastCounts:
    """Counts the PUBLISH packets that the fast path handles: with properties, or by versions of
    the receivers, 3 only, 5 only, or mixed."""

    def __init__(self, world):
        self.events = world.events
        self.broker = world.broker
        # A CONNECT would find that this class intercepts the fast path
        if self.broker.five and not MICROPYTHON and not world.is_plain:
            ondemand.take("v5.quick_properties_cpython", 0).begin(self.broker)
        self.inner = self.broker.handle_fast
        self.broker.handle_fast = self.handle_fast

    def handle_fast(self, columns, conn, buf, at, end):
        stop = self.inner(columns, conn, buf, at, end)
        heap.lift()
        _count_publish(self.events, self.broker, conn, buf, at, stop)
        heap.drop()
        return stop


def _count_publish(events, broker, conn, buf, at, stop):
    routes = broker.subscriptions.routes
    pkt = new_packet(broker.pkt[10])
    level = broker.conns.level[conn]
    while at < stop:
        at += next_packet(buf, at, stop, pkt)
        if pkt[0] == 3 and level == 5 and buf[pkt[9]]:
            events[f"fast QoS {pkt[1] >> 1} properties"] += 1
            events["fast alias"] += not pkt[8]
        elif pkt[0] == 3:
            slot = routes.find(buf, pkt[7], pkt[8])
            is_mixed = routes.mid[slot] != (routes.first if level == 5 else routes.end)[slot]
            kind = "mixed" if is_mixed else "5" if level == 5 else "3"
            events[f"fast QoS {pkt[1] >> 1} {kind}"] += 1


def note_full(world):
    """Count the refusals of each table of this broker, and note the seed's configuration."""
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
    """Note which stores of bytes have no free block now: names, topics, messages, aliases."""
    broker = world.broker
    events = world.events
    events["full node names"] += not space(broker.subscriptions.nodes)
    events["full retained names"] += not space(broker.retained.names)
    events["full message bytes"] += not broker.messages.arena.free_blocks()
    if broker.five:
        events["full aliases"] += _connections_without_alias(broker.five.aliases)


def _connections_without_alias(aliases):
    """Return how many connections use every topic alias that their client accepts."""
    full = 0
    for conn, offered in enumerate(aliases.offered):
        first = conn * aliases.most
        full += bool(offered and all(aliases.outward_len[first : first + offered]))
    return full
