# log_full_tables.py - log lines about tables that refuse or drop something. Not in
# status/log_connections.py, since a small heap has no space for both at a time. Loaded on demand;
# owns nothing; allocates the lines.
from slotmq.constants import ALL_BITS, LOGGED_REFUSALS, MINUTE, QOS_0, WARNING


# The counters of what tables refuse or drop (net/timers.py adds them up), each with what may be
# too low: the table's own limit first, which has its name.
_TABLES = """\
conns.refused connections, tls_connections
sessions.refused sessions
sessions.ids_refused received
subscriptions.refused subscriptions, topic_bytes, levels
subscriptions.nodes_refused nodes, name_bytes
messages.refused messages, message_bytes
deliveries.refused deliveries, max_queued_messages, max_session_share, max_offline_share
retained.refused retained, retained_name_bytes
five.shares.refused shares
five.aliases.refused aliases
stats tx_bytes, message_bytes"""
_LINE = "Table %s: %%d refused or dropped%%s."
_BOUNDS = {"deliveries": 22, "messages": 23, "tx_bytes": 27}  # those that are noted


def log(broker, refused):
    """Log a line for each table that refused or dropped more since its last line, at most once a
    minute. refused: the sum of all counters. broker.stats has how much of it was logged ([7]) and
    each counter at its last line ([8] on); broker.clock has when each was logged ([2] on)."""
    stats, clock = broker.stats, broker.clock
    for i, row in enumerate(_TABLES.split("\n")):
        path, _, why = row.partition(" ")
        count = broker
        for part in path.split("."):
            count = getattr(count, part, 0)
        count = stats[QOS_0] if count is stats else count
        more = count - stats[8 + i] & ALL_BITS
        if more and stats[8 + i] and broker.now - clock[2 + i] < MINUTE:
            refused -= more  # later
        elif more:
            name = why.split(",")[0]
            why += ", the journal's space" if broker.journal_full else ""
            why = " (see %s)" % why
            text = _LINE % name
            if name == "tx_bytes":
                text = "Outgoing buffers: %d QoS 0 dropped%s."
            if name in _BOUNDS:
                why = broker.said.pop(_BOUNDS[name], why)  # of delivery/refusing_bound.py
                stats[_BOUNDS[name]] = 0
            broker.log(WARNING, text % (more, why))
            stats[8 + i] = count & ALL_BITS
            clock[2 + i] = broker.now
    stats[LOGGED_REFUSALS] = refused & ALL_BITS
