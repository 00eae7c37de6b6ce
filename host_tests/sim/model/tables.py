# tables.py - read the broker's tables, for what no packet shows: which sessions there are, what
# is queued for each, which messages are retained, what was refused.
#
# Sessions are named by their client id; `name` is that.
from slotmq.delivery import routing
from slotmq.tables import insertion

from ...broker.unit.support.tables import came_by
from ..messages import number_of

NONE = 0xFFFF
_EXTRA = 8
_TAKEN_OVER = 7


def connection(world, link):
    """Return the broker's connection slot of a link, or NONE."""
    return world.loop.of_stream.get(link, NONE)


def attached(world, link):
    """Does this link have a session in the broker?"""
    conn = connection(world, link)
    return conn != NONE and world.broker.conns.session[conn] != NONE


def is_taken_over(world, link):
    """Has this link lost its session to a newer one?"""
    reason = world.broker.conns.reason
    return not attached(world, link) and reason[link.conn] == _TAKEN_OVER


def session(broker, name):
    return broker.sessions.find(name, 0, len(name))


def disconnected_at(broker, name):
    """Return when a session's connection ended, in tenths of a second."""
    slot = session(broker, name)
    return broker.sessions.left[slot] if slot != NONE else 0


def has_will(broker, name):
    slot = session(broker, name)
    return slot != NONE and broker.sessions.will[slot] != NONE


def scans(broker, name):
    slot = session(broker, name)
    return broker.sessions.scans[slot] if slot != NONE else 0


def has_state(broker, name):
    """Has a session a message to be delivered, or a QoS 2 id?"""
    slot = session(broker, name)
    return broker.sessions.head[slot] != NONE or broker.sessions.id_count[slot] > 0


def message_slots(broker, name):
    """Return {message slot that a session refers to: number of its blocks}."""
    slot = session(broker, name)
    used = {}
    entry = broker.sessions.head[slot] if slot != NONE else NONE
    while entry != NONE:
        _count(broker, broker.deliveries.msg[entry], used)
        entry = broker.deliveries.next[entry]
    if slot != NONE and broker.sessions.id_msg:
        first = slot * broker.sessions.received
        for at in range(first, first + broker.sessions.id_count[slot]):
            _count(broker, broker.sessions.id_msg[at], used)
    return used


def delivery_count(broker, name):
    """Return how many deliveries a session has, with those that only wait for PUBCOMP."""
    slot = session(broker, name)
    entry = broker.sessions.head[slot] if slot != NONE else NONE
    count = 0
    while entry != NONE:
        count += 1
        entry = broker.deliveries.next[entry]
    return count


def _count(broker, msg, used):
    messages = broker.messages
    if msg != NONE:
        size = messages.topic_len[msg] + 2 + messages.payload_len[msg]
        used[msg] = -(-size // messages.arena.size)


def has_space(broker, name):
    """May one more message wait for this session?"""
    return routing.has_space(broker, session(broker, name))


def has_received(broker, name, packet_id):
    return broker.sessions.find_received(session(broker, name), packet_id) >= 0


def subscribed(broker, name, topic_filter, group):
    """Is there such a subscription?"""
    subs = broker.subscriptions
    node = insertion.find_node(subs, topic_filter, 0, len(topic_filter))
    if node == NONE:
        return False
    share = NONE
    if group is not None:
        share = broker.five.shares.find(node, group, 0, len(group))
        if share == NONE:
            return False
    return insertion.find(subs, session(broker, name), node, share) != NONE


def message_key(broker, msg):
    """Return Message.key() of the message in a slot."""
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


def _topic(broker, msg):
    topic = bytearray(broker.limits.topic_bytes)
    return bytes(topic[: broker.messages.read_topic(msg, topic, 0)])


def group_slot(broker, topic_filter, name):
    """Return the slot of a group, or NONE."""
    node = insertion.find_node(broker.subscriptions, topic_filter, 0, len(topic_filter))
    return NONE if node == NONE else broker.five.shares.find(node, name, 0, len(name))


class DeliveryRow:
    """A row of the broker's deliveries table."""

    def __init__(self, key, topic, packet_id, state, flags):
        self.key = key
        self.topic = topic  # None: the message is not needed any more
        self.packet_id = packet_id
        self.state = state
        self.qos = flags >> 1 & 3
        self.retain = flags & 1
        self.was_sent = flags & 8
        self.group = NONE  # the slot of the group from which it came
        self.identifier = None


def queue(broker, name):
    """Return the rows of a session in their order, with those at QoS 0."""
    slot = session(broker, name)
    if slot == NONE:
        return []
    d = broker.deliveries
    entry = broker.sessions.head[slot]
    rows = []
    while entry != NONE:
        msg = d.msg[entry]
        what = topic = None
        if msg != NONE:
            what, topic = message_key(broker, msg), _topic(broker, msg)
        row = DeliveryRow(what, topic, entry + 1, d.state[entry], d.flags[entry])
        if broker.five and broker.subscriptions.kind[slot]:
            row.group, row.identifier = came_by(broker, entry)
        rows.append(row)
        entry = d.next[entry]
    return rows


def retained(broker, topic):
    """Return the key of the message that is retained for a topic, or None."""
    slot = broker.retained.find(topic, 0, len(topic))
    return None if slot == NONE else message_key(broker, broker.retained.msg[slot])


def retained_seconds_left(broker, topic):
    """Return in how many seconds the retained message of a topic expires, or None."""
    slot = broker.retained.find(topic, 0, len(topic))
    return None if slot == NONE else _seconds_left(broker, broker.retained.msg[slot])


def queued_seconds_left(broker, name):
    """The same for a session's deliveries: {message key: [seconds of each copy]}."""
    slot = session(broker, name)
    entry = NONE if slot == NONE else broker.sessions.head[slot]
    found = {}
    while entry != NONE:
        msg = broker.deliveries.msg[entry]
        if _seconds_left(broker, msg) is not None:
            found.setdefault(message_key(broker, msg), []).append(_seconds_left(broker, msg))
        entry = broker.deliveries.next[entry]
    return found


def _seconds_left(broker, msg):
    if msg == NONE or not broker.five or not broker.messages.flags[msg] & 8:
        return None
    return broker.five.remaining(broker, msg) if broker.five.expires[msg] else None


def retained_count(broker):
    return broker.retained.names.count()


_COUNTERS = ("messages", "deliveries", "dropped", "retained", "subscriptions", "aliases")
_COUNTERS += ("sessions", "connections", "received")


class RefusalCounters:
    """The broker's counters of what was refused and dropped, as they are now."""

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
        """Return how much each counter has grown."""
        grown = Refusals()
        for name in _COUNTERS:
            setattr(grown, name, getattr(self, name) - getattr(before, name))
        return grown


class Refusals:
    """How much each counter has grown."""

    def __init__(self):
        for name in _COUNTERS:
            setattr(self, name, 0)

    def any(self):
        refused = self.messages or self.deliveries or self.retained or self.subscriptions
        return bool(refused or self.aliases or self.sessions or self.received)


# What a journal stores of a session


def names(broker):
    """Return the client ids of all sessions."""
    sessions = broker.sessions
    return [sessions.client_id(slot) for slot in range(sessions.slots) if sessions.used(slot)]


def will(broker, name):
    return message_key(broker, broker.sessions.will[session(broker, name)])


def will_at(broker, name):
    return broker.five.will_at[session(broker, name)]


def expiry(broker, name):
    return broker.five.expiry[session(broker, name)]


def subscriptions(broker, name):
    """(filter, share name) -> (QoS, options, identifier)"""
    subs = broker.subscriptions
    five = broker.five
    buf = bytearray(512)
    found = {}
    sub = broker.sessions.first_sub[session(broker, name)]
    while sub != NONE:
        text = bytes(buf[subs.filter_text(subs.node[sub], buf, 512) : 512])
        share = five.share[sub] if five else NONE
        group = None
        if share != NONE:
            group = bytes(buf[: five.shares.names.read(share, buf, 0)])
        options, identifier = (five.options[sub] & 12, five.identifier[sub]) if five else (0, 0)
        found[text, group] = (subs.qos[sub], options, identifier)
        sub = subs.next_in_session[sub]
    return found


def received(broker, name):
    """QoS 2 packet id -> key of the message that waits for PUBREL, or None"""
    sessions = broker.sessions
    slot = session(broker, name)
    found = {}
    for at in range(slot * sessions.received, slot * sessions.received + sessions.id_count[slot]):
        msg = NONE if sessions.id_msg is None else sessions.id_msg[at]
        found[sessions.ids[at]] = None if msg == NONE else message_key(broker, msg)
    return found


def has_uncommitted_changes(broker):
    """Has anything changed since the last commit?"""
    changed = broker.sessions.changed or broker.subscriptions.changed or broker.retained.changed
    return changed or broker.sessions.ids_high[1] or broker.deliveries.count[4] & 1
