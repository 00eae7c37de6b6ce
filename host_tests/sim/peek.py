# peek.py - what the broker's tables say, for what no client can see at once: whether a
# session is there, who got what was dropped, which message is retained.
from slotmq import deliver

from .messages import number_of

NONE = 0xFFFF
_EXTRA = 8
_RELEASED = 3


def connection(world, link):
    """The broker's slot of a link, or NONE."""
    return world.loop.of_stream.get(link, NONE)


def attached(world, link):
    """Does this link have its session in the broker?"""
    conn = connection(world, link)
    return conn != NONE and world.broker.conns.session[conn] != NONE


def session(broker, name):
    return broker.sessions.find(name, 0, len(name))


def left(broker, name):
    """When a session's connection ended, in tenths of a second."""
    slot = session(broker, name)
    return broker.sessions.left[slot] if slot != NONE else 0


def has_will(broker, name):
    slot = session(broker, name)
    return slot != NONE and broker.sessions.will[slot] != NONE


def scans(broker, name):
    slot = session(broker, name)
    return broker.sessions.scans[slot] if slot != NONE else 0


def has_room(broker, name):
    """May one more message wait for this session?"""
    return deliver.has_room(broker, session(broker, name))


def has_received(broker, name, packet_id):
    return broker.sessions.find_received(session(broker, name), packet_id) >= 0


def subscribed(broker, name, topic_filter, group):
    """Is there such a subscription?"""
    subs = broker.subscriptions
    node = subs.find_node(topic_filter, 0, len(topic_filter))
    if node == NONE:
        return False
    share = NONE
    if group is not None:
        share = broker.five.shares.find(node, group, 0, len(group))
        if share == NONE:
            return False
    return subs.find(session(broker, name), node, share) != NONE


def key(broker, msg):
    """Which message a slot has: its number, or its topic where the payload is empty."""
    messages = broker.messages
    n = messages.topic_len[msg]
    size = messages.payload_len[msg]
    skip = 0
    if messages.flags[msg] & _EXTRA:
        skip = broker.five.props[msg]
    data = bytearray(n + size)
    messages.arena.move(messages.first[msg], 2, data, 0, n + size, 1)
    if size == skip:
        return bytes(data[:n])
    return number_of(bytes(data[n + skip :]))


def group(broker, topic_filter, name):
    """The slot of a group, or NONE."""
    node = broker.subscriptions.find_node(topic_filter, 0, len(topic_filter))
    return NONE if node == NONE else broker.five.shares.find(node, name, 0, len(name))


class Row:
    """A delivery in the table."""

    def __init__(self, key, packet_id, state, flags):
        self.key = key
        self.packet_id = packet_id
        self.state = state
        self.flags = flags
        self.group = NONE  # by which it came
        self.identifier = None


def queue(broker, name):
    """The deliveries of a session in their order, those of QoS 0 too."""
    slot = session(broker, name)
    if slot == NONE:
        return []
    d = broker.deliveries
    entry = broker.sessions.head[slot]
    rows = []
    while entry != NONE:
        what = key(broker, d.msg[entry]) if d.msg[entry] != NONE else None
        row = Row(what, entry + 1, d.state[entry], d.flags[entry])
        if broker.five and broker.five.marked[slot]:
            row.group = broker.five.group[entry]
            row.identifier = broker.five.ident[entry]
        rows.append(row)
        entry = d.next[entry]
    return rows


def retained(broker, topic):
    """What is retained for a topic: a number, or None."""
    slot = broker.retained.find(topic, 0, len(topic))
    return None if slot == NONE else key(broker, broker.retained.msg[slot])


def retained_count(broker):
    return broker.retained.names.count()


class Counts:
    """The counters of what was refused and dropped."""

    def __init__(self, broker):
        subs = broker.subscriptions
        self.messages = broker.messages.refused
        self.deliveries = broker.deliveries.refused
        self.dropped = broker.stats[4] + broker.carried[4] * 100000000
        self.retained = broker.retained.refused
        self.subscriptions = subs.refused + subs.nodes_refused
        self.aliases = 0
        if broker.five:
            self.subscriptions += broker.five.shares.refused
            self.aliases = broker.five.aliases.refused
        self.sessions = broker.sessions.refused
        self.connections = broker.conns.refused
        self.received = broker.sessions.ids_refused

    def since(self, before):
        """Each counter's growth, as another one."""
        grown = Growth()
        grown.messages = self.messages - before.messages
        grown.deliveries = self.deliveries - before.deliveries
        grown.dropped = self.dropped - before.dropped
        grown.retained = self.retained - before.retained
        grown.subscriptions = self.subscriptions - before.subscriptions
        grown.aliases = self.aliases - before.aliases
        grown.sessions = self.sessions - before.sessions
        grown.connections = self.connections - before.connections
        grown.received = self.received - before.received
        return grown


class Growth:
    pass
