# log_full_tables.py - what the log says of tables that refuse or drop. Loaded on demand, by
# itself: where heap is scarce there is none for it beside what status/log_connections.py is needed
# for. Allocates the lines.
from slotmq.platform.runtime import const

_WARNING = const(2)
_MINUTE = const(600)  # tenths of a second
_ALL = const(0x3FFFFFFF)  # of a count, that a column keeps

# What net/timers.py adds up: where tables count what they refuse or drop. And what may be too
# little: first the table's name, which is that of its limit, then others and settings.
_TABLES = """\
conns.refused
sessions.refused
sessions.ids_refused
subscriptions.refused
subscriptions.nodes_refused
messages.refused
deliveries.refused
retained.refused
five.shares.refused
five.aliases.refused"""
_LIMITS = """\
connections
sessions
received
subscriptions, topic_bytes, levels
nodes, node_bytes
messages, message_bytes
deliveries, max_queued_messages, max_session_share, max_offline_share
retained, retained_name_bytes
shares
aliases"""


def tell(broker, refused):
    """So much the tables have refused or dropped altogether: a line of each that has had none for
    a minute. Behind broker.stats stands how much of that was told, then each table's count when it
    was told; behind broker.clock when to look again, then when each was told."""
    stats, clock = broker.stats, broker.clock
    paths = _TABLES.split("\n")
    for i in range(len(paths)):
        count = broker
        for part in paths[i].split("."):
            count = getattr(count, part, 0)
        more = count - stats[8 + i] & _ALL
        if more and stats[8 + i] and broker.now - clock[2 + i] < _MINUTE:
            refused -= more  # later
        elif more:
            why = _LIMITS.split("\n")[i]
            name = why.split(",")[0]
            why += ", the journal's room" if broker.journal_full else ""
            what = (name, more, why)
            broker.log(_WARNING, "Table %s: %d refused or dropped (see %s)." % what)
            stats[8 + i] = count & _ALL
            clock[2 + i] = broker.now
    stats[7] = refused & _ALL
