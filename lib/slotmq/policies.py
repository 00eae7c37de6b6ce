# policies.py - what settings are measured against: the table that a number counts in, and
# what may happen when a table is full. Loaded on demand by settings.py and conf.py;
# allocates.

# Settings that count entries of a table, or bytes in one, each with the limit it
# must not exceed. (One text, as the next: tuples of strings take 4 times the heap.)
TABLE_OF = """\
max_connections connections
max_inflight_messages inflight
max_queued_messages queued
message_size_limit max_packet
max_packet_size max_packet
mqtt31_client_id_max client_id_bytes
"""

# What may happen when a table is full; the first policy is the default.
WHEN_FULL = """\
connections refuse
sessions drop_oldest refuse
subscriptions refuse
retained refuse
messages drop_newest drop_oldest disconnect
deliveries drop_newest drop_oldest
received disconnect
reassembly wait
"""


def rows(text):
    """A table as the words of each line."""
    return [line.split() for line in text.split("\n")[:-1]]


def defaults():
    """What happens to each table by default when it is full."""
    return {row[0]: row[1] for row in rows(WHEN_FULL)}


def check(settings, limits):
    """Raise ValueError for what the broker made from these limits could not do."""
    for row in rows(WHEN_FULL):
        if settings.when_full[row[0]] not in row[1:]:
            raise ValueError("when_full %s: one of %s" % (row[0], row[1:]))
    if len(settings.auto_id_prefix) > 15:
        raise ValueError("auto_id_prefix: at most 15 bytes")
    for name, limit in rows(TABLE_OF):
        size = getattr(limits, limit)
        if getattr(settings, name) > size:
            raise ValueError("%s: at most %d, see limit %s" % (name, size, limit))
    if settings.allow_duplicate_messages or settings.mqtt_versions == 5:
        if limits.route_entries < limits.subscriptions:
            raise ValueError("route_entries: at least subscriptions")
