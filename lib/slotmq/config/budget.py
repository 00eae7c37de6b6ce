# budget.py - how many bytes each table takes of the heap of 32-bit MicroPython. Loaded at the
# start and unloaded afterwards; owns nothing; allocates.
#
# A row is `fixed + slots * each + texts`. Fixed is the cost of the table's objects without
# any slot (about 30 bytes a column, measured); each is the sum of the widths of its columns.
# A test compares the sum with gc.mem_alloc().
from slotmq.platform import ondemand


def rows(limits, settings=None):
    """The heap of all tables: [(owner, bytes, how many)]; with the settings' files of users and
    rules."""
    return [
        _connections(limits),
        ("reassembly", limits.reassembly * (limits.max_packet + 2), limits.reassembly),
        _sessions(limits),
        ("subscriptions", 160 + limits.subscriptions * 11, limits.subscriptions),
        ("nodes", 320 + limits.nodes * 18 + _names(limits.nodes, limits.name_bytes), limits.nodes),
        _routes(limits),
        _retained(limits),
        _messages(limits),
        ("deliveries", 384 + limits.deliveries * 10, limits.deliveries),
        ("version 5", _version5(limits), limits.messages),
        _aliases(limits),
        (
            "shares",
            320 + limits.shares * 5 + _names(limits.shares, limits.shares * 32),
            limits.shares,
        ),
        # the receive buffer, the work buffer for a topic and a filter, the Broker itself
        ("shared", 1232 + limits.rx_bytes + 2 * limits.topic_bytes, 1),
    ] + (
        ([tls_row(limits.tls_connections)] if limits.tls_connections else [])
        + (access_rows(settings, limits) if settings else [])
    )


def journal(limits):
    """The journal's own row: its columns and buffer, and those of its medium."""
    buf = 48 + max(limits.client_id_bytes, 4 * limits.received)
    return ("journal", 848 + buf + limits.deliveries, 1)


def access_rows(settings, limits):
    """The rows of password_file, acl_file and bridges."""
    found = []
    if settings.connections:
        found = ondemand.take("bridge.options", 0).rows(settings, limits)
    found += [owners_row(limits)] if settings.password_file or settings.acl_file else []
    if settings.password_file:
        found.append(users_row(limits))
    return found + ([acl_row(limits)] if settings.acl_file else [])


def owners_row(limits):
    """With password_file or acl_file: which user each session has; a name of 15 bytes for
    each user."""
    n = limits.users
    return ("session owners", 200 + n * (6 + 32) + limits.sessions * 3, n)


def acl_row(limits):
    """The row of acl_file: its rules, and publishers' bits."""
    rules = limits.acl_rules * 5 + limits.acl_bytes + 2 * limits.topic_bytes
    rules += 6 * (limits.users + 2)
    bits = _route_slots(limits) * ((limits.connections + 8) // 8)
    return ("access lists", 620 + rules + bits, limits.acl_rules)


def users_row(limits):
    """The row of the users, with password_file: columns, a name of 15 bytes for each, failures."""
    n = limits.users
    failures = 3 * 13 * max(8, limits.connections)
    return ("users", 700 + n * (133 + 48) + 2 * limits.connections + failures, n)


def tls_row(n):
    """TLS: its code, the certificate, what the one handshake takes for a moment; and mbedTLS's
    buffers for each connection, measured on the emulated RP2040."""
    return ("tls_connections", 16000 + n * 24800, n)


def _connections(limits):
    # Outgoing buffer, tail, columns; one connection more than the limit, in reserve.
    n = limits.connections + 1
    return ("connections", 1076 + n * (limits.tx_bytes + limits.tail_bytes + 71), n)


def _sessions(limits):
    n = limits.sessions
    ids = (limits.client_id_bytes + 15) // 16 * 16 * n
    return ("sessions", 784 + n * (60 + 2 * limits.received) + _names(n, ids), n)


def _route_slots(limits):
    n = 1
    while n * 2 <= limits.routes:
        n *= 2
    return n


def _routes(limits):
    n = _route_slots(limits)
    entries = 2 * limits.route_entries + limits.sessions
    return ("routes", 260 + n * (10 + limits.route_topic_bytes) + entries, n)


def _retained(limits):
    n = limits.retained
    return ("retained", 576 + n * 2 + _names(n, limits.retained_name_bytes), n)


def _messages(limits):
    blocks = limits.message_bytes // limits.message_block
    return ("messages", 512 + limits.messages * 13 + blocks * (limits.message_block + 2), blocks)


def _names(slots, text_bytes):
    # A hashed set of texts: 10 bytes a slot, 2 a bucket, 18 for each block of 16 bytes of text.
    buckets = 8
    while buckets < slots:
        buckets *= 2
    return slots * 10 + buckets * 2 + text_bytes // 16 * 18


def _version5(limits):
    # The columns of v5/extension.py.
    n = limits.connections + 1
    columns = limits.subscriptions * 7 + limits.messages * 7 + limits.deliveries * 6
    return 1490 + columns + limits.sessions * 21 + n * 10 + 2 * limits.topic_bytes


def _aliases(limits):
    n = (limits.connections + 1) * limits.aliases
    block = limits.message_block
    blocks = n * ((min(limits.topic_bytes, 1024) + block - 1) // block)
    return ("aliases", 350 + (limits.connections + 1) * 4 + n * 8 + blocks * (block + 2), n)
