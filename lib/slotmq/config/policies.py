# policies.py - what may happen when a table is full (when_full), checks of settings against
# limits, and which listeners let nobody in. Loaded on demand by config/settings.py and
# config/mosquitto_conf.py, and at the end of a start; owns nothing; allocates.
from slotmq.platform import ondemand

# Settings that are usually not there; the defaults are in journal/start.py and access/login.py.
_OF_OTHERS = """persistence_location persistence_file persistence_sync autosave_interval
login_delay_max log_facility max_queued_bytes max_inflight_bytes allow_control_characters"""
# Settings that count entries or bytes of a table, each with the limit that it must not
# exceed. (This table and the next are texts: tuples of strings take 4 times the heap.)
_TABLE_OF = """\
max_connections connections
max_inflight_messages deliveries
max_queued_messages deliveries
message_size_limit max_packet
max_packet_size max_packet
mqtt31_client_id_max client_id_bytes
"""

# What may happen when a table is full; the first policy is the default.
WHEN_FULL = """\
connections refuse
sessions drop_empty drop_oldest refuse
subscriptions refuse
retained refuse
messages drop_newest drop_oldest disconnect
deliveries drop_newest drop_oldest
received disconnect
reassembly wait
"""


def rows(text):
    """The words of each line of a table."""
    return [line.split() for line in text.split("\n")[:-1]]


def sized():
    """[setting, its limit] for each line of _TABLE_OF."""
    return rows(_TABLE_OF)


def fill(settings, when_full, values):
    """Take over the arguments of Settings(). (Here, since a running broker needs no names.)"""
    settings.when_full.update(defaults())
    settings.when_full.update(when_full)
    others = _OF_OTHERS.split()
    for name in values:
        if not hasattr(settings, name) and name not in others:
            near = ondemand.take("config.other_keys", 0).suggestion(name, dir(settings) + others)
            raise TypeError("Settings has no " + name + near)
        setattr(settings, name, values[name])


def defaults():
    """The default policy of each table."""
    return {row[0]: row[1] for row in rows(WHEN_FULL)}


def check(settings, limits):
    """Raise ValueError for a setting that a broker with these limits cannot honour."""
    for row in rows(WHEN_FULL):
        if settings.when_full[row[0]] not in row[1:]:
            raise ValueError("when_full %s: one of %s" % (row[0], row[1:]))
    if len(settings.auto_id_prefix) > 15:
        raise ValueError("auto_id_prefix: at most 15 bytes")
    for name, limit in sized():
        size = getattr(limits, limit)
        if getattr(settings, name) > size:
            raise ValueError("%s: at most %d, see limit %s" % (name, size, limit))
    key, wrong = connack(settings, limits)
    if wrong:
        raise ValueError("%s: %s" % (key, wrong))
    if settings.allow_duplicate_messages or settings.mqtt_versions == 5:
        if limits.route_entries < limits.subscriptions:
            wrong = "route_entries: at least subscriptions (%d)"
            raise ValueError(wrong % limits.subscriptions)


def connack(settings, limits):
    """-> the key that makes the longest CONNACK and what is wrong with it; None, None: it fits.

    CONNACK must fit into half of the outgoing buffer: so much is free for it, whatever a
    client sends after its CONNECT."""
    if settings.mqtt_versions == 3:
        return None, None
    space = min(limits.tx_bytes >> 1, 65535)
    for key, size in (_accepts(settings, limits), _refers(settings)):
        size += 5 if size < 125 else 9  # first byte, lengths, flags, reason
        if size > space:
            wrong = "a CONNACK of at most %d bytes, half of limit tx_bytes; it takes %d"
            return key, wrong % (space, size)
    return None, None


def _accepts(settings, limits):
    # The longest CONNACK that accepts (v5/connack.py): the key that makes it so long, and the
    # bytes of its properties.
    key = "auto_id_prefix"
    size = 8 + 3 * (limits.aliases > 0) + 2 * (not limits.shares)
    lowest = min([settings.max_qos] + [each[3].get("max_qos", 2) for each in settings.listeners])
    size += 2 * (lowest < 2) + 2 * (not settings.retain_available)
    size += 3 * (settings.max_keepalive not in (0, 65535))
    size += 5 * (settings.persistent_client_expiration > 0)
    if settings.allow_zero_length_clientid:
        own = [each[3].get("auto_id_prefix", b"") for each in settings.listeners]
        size += 11 + max([len(prefix) for prefix in own + [settings.auto_id_prefix]])
    if settings.password_file:
        key = "password_file"
        size += 65  # the method's name, and v= with the server's signature
    if settings.response_information:
        key = "response_information"
        size += 3 + len(settings.response_information.encode())
    return key, size


def _refers(settings):
    # The same for a CONNACK that sends a client to another server.
    return "server_reference", 3 + len((settings.server_reference or "").encode())


def warnings(settings, listeners):
    """A warning for each listener at which nobody could come in: (hosts, port, _, options)."""
    found = []
    for hosts, port, _, own in listeners:
        has_users = settings.password_file and own.get("password_file", 1)
        has_users = has_users or own.get("certificate")
        if not has_users and not own.get("allow_anonymous", settings.allow_anonymous):
            found.append(
                "Nobody may come in at %s:%d, unless a hook accepts: there are no users. Add"
                " `password_file FILE`, which `slotmq passwd FILE NAME` makes, or"
                " `allow_anonymous true` to let in everybody." % (hosts[0], port)
            )
    return found
