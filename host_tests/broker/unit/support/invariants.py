# invariants.py - relations between the tables of a broker that hold after every turn. Each check
# counts by walking the lists, and compares that with the broker's own counters.
from slotmq.tables.insertion import find

_NONE = 0xFFFF
_QUEUED = 0
_VACANT = 0  # state of a connection
_LEAVING = (3, 5)  # ending, lingering
_IDLE = 0  # of an outgoing buffer: nothing is in it


def surface(broker):
    """Exceptions leave the turn. (The loop would log them, and end the connection.)"""
    caught = broker.caught
    broker.caught = lambda error, conn: not isinstance(error, MemoryError) or caught(error, conn)


def broken(broker):
    """The relations that do not hold, as texts."""
    wrong = []
    checks = (_deliveries, _references, _space, _sessions, _blocks, _buffers, _tree, _groups)
    checks += (_aliases,)
    for check in checks:
        wrong += [check.__name__ + ": " + text for text in check(broker)]
    return wrong


def _entries(broker, session):
    """The deliveries of a session in their order."""
    entry = broker.sessions.head[session]
    while entry != _NONE:
        yield entry
        entry = broker.deliveries.next[entry]


def _deliveries(broker):
    d, s = broker.deliveries, broker.sessions
    live = 0
    for session in range(s.slots):
        entries = list(_entries(broker, session))
        live += len(entries)
        queued = sum([d.state[entry] == _QUEUED for entry in entries])
        if (queued, len(entries) - queued) != (s.queued[session], s.inflight[session]):
            yield f"session {session} counts {s.queued[session]} and {s.inflight[session]}"
        cursor = s.cursor[session]
        if cursor != _NONE and cursor not in entries:
            yield f"cursor of session {session}"
        if (entries or [_NONE])[-1] != s.tail[session]:
            yield f"tail of session {session}"
        if [d.session[entry] for entry in entries] != [session] * len(entries):
            yield f"an entry of session {session} is another's"
    if live != d.count[0]:
        yield f"{live} deliveries, not {d.count[0]}"


def _references(broker):
    m = broker.messages
    refs = [0] * m.slots
    holders = [broker.retained.msg, broker.sessions.will, broker.conns.chunked_msg]
    if broker.sessions.id_msg is not None:
        holders.append(broker.sessions.id_msg)
    d = broker.deliveries
    holders.append([d.msg[entry] for entry in range(d.slots) if d.session[entry] != _NONE])
    for column in holders:
        for msg in column:
            if msg != _NONE:
                refs[msg] += 1
    for msg in range(m.slots):
        if refs[msg] != m.refs[msg]:
            yield f"message {msg} has {refs[msg]} holders and counts {m.refs[msg]}"
    if sum([count > 0 for count in refs]) != m.count[0]:
        yield f"{m.count[0]} messages"


def _space(broker):
    m = broker.messages
    size = m.arena.size
    used = 0
    for msg in range(m.slots):
        if m.refs[msg]:
            used += (m.topic_len[msg] + 2 + m.payload_len[msg] + size - 1) // size
    if used + m.arena.free_blocks() != m.arena.blocks:
        yield f"{used} blocks used, {m.arena.free_blocks()} free of {m.arena.blocks}"


def _sessions(broker):
    conns, s = broker.conns, broker.sessions
    connected = 0
    for conn in range(conns.slots):
        session = conns.session[conn]
        if session != _NONE:
            connected += 1
            if s.conn[session] != conn:
                yield f"connection {conn} and session {session}"
    if connected != broker.connected:
        yield f"{connected} connected, not {broker.connected}"
    if connected != sum([conn != _NONE for conn in s.conn]):
        yield "sessions with a connection"


def _blocks(broker):
    m = broker.messages
    blocks = [0] * broker.sessions.slots
    for entry in range(broker.deliveries.slots):
        msg = broker.deliveries.msg[entry]
        session = broker.deliveries.session[entry]
        if session != _NONE and msg != _NONE:
            n = m.topic_len[msg] + 2 + m.payload_len[msg]
            blocks[session] += (n + m.arena.size - 1) // m.arena.size
    if broker.sessions.blocks and blocks != list(broker.sessions.blocks):
        yield f"blocks held: {blocks}, not {list(broker.sessions.blocks)}"


def _buffers(broker):
    conns = broker.conns
    for conn in range(conns.slots):
        base = conn * conns.tx_bytes
        if conns.state[conn] == _VACANT:
            continue
        if not base <= conns.tx_end[conn] <= base + conns.tx_bytes:
            yield f"outgoing buffer of connection {conn}"
        limit = base + conns.tx_bytes if conns.chunked_msg[conn] == _NONE else 0
        # After DISCONNECT, of 5.0 or of a bridge, and a CONNACK that refuses, the limit stays as
        # low as it was.
        is_last = conns.level[conn] == 5 or broker.bridges
        is_last = is_last and conns.state[conn] in _LEAVING
        if conns.tx_limit[conn] != limit and not (is_last and conns.tx_limit[conn] < limit):
            yield f"limit of connection {conn}"
    if conns.count != sum([state != _VACANT for state in conns.state]):
        yield f"{conns.count} connections"


def _tree(broker):
    subs, s = broker.subscriptions, broker.sessions
    seen = 0
    for session in range(s.slots):
        sub = s.first_sub[session]
        owed = 0
        while sub != _NONE:
            seen += 1
            owed += subs.scan[sub] != 0
            share = _NONE if subs.share is None else subs.share[sub]
            if subs.session[sub] != session or find(subs, session, subs.node[sub], share) != sub:
                yield f"subscription {sub} of session {session}"
            sub = subs.next_in_session[sub]
        if owed != s.scans[session]:
            yield f"{owed} scans of session {session}, not {s.scans[session]}"
    if seen != subs.count:
        yield f"{seen} subscriptions, not {subs.count}"
    if sum(subs.children) != subs.nodes.count():
        yield f"{sum(subs.children)} children, {subs.nodes.count()} nodes"


def _groups(broker):
    if not broker.five:
        return
    subs, shares = broker.subscriptions, broker.five.shares
    members = [0] * len(shares.refs)
    for sub in range(subs.slots):
        share = subs.share[sub]
        if share != _NONE:
            members[share] += 1
            if shares.names.scope[share] != subs.node[sub]:
                yield f"group {share} is at another node than subscription {sub}"
    if members != list(shares.refs):
        yield f"{members} members, not {list(shares.refs)}"
    if sum([count > 0 for count in members]) != shares.names.count():
        yield f"{shares.names.count()} groups"


def _aliases(broker):
    if not broker.five:
        return
    aliases = broker.five.aliases
    arena = aliases.arena
    lengths = [n for column in (aliases.inward_len, aliases.outward_len) for n in column if n]
    if len(lengths) != aliases.count:
        yield f"{len(lengths)} aliases, not {aliases.count}"
    used = sum([(n + arena.size - 1) // arena.size for n in lengths])
    if used + arena.free_blocks() != arena.blocks:
        yield f"{used} blocks used, {arena.free_blocks()} free of {arena.blocks}"


def left(broker):
    """What a turn has left to do, though the next one waits for events."""
    if broker.turn_soon:
        return
    conns, s, d = broker.conns, broker.sessions, broker.deliveries
    if conns.counts[0]:
        yield f"{conns.counts[0]} connections have output"
    if d.pending[0]:
        yield f"{d.pending[0]} sessions have something to send"
    if broker.ending_count:
        yield f"{broker.ending_count} connections end"
    for session in range(s.slots):
        conn, entry = s.conn[session], s.cursor[session]
        if conn == _NONE or conns.out[conn] != _IDLE or conns.chunked_msg[conn] != _NONE:
            continue
        # What is sent again, and max_inflight_bytes, may leave the window smaller.
        is_new = entry != _NONE and d.state[entry] == _QUEUED and not d.count[7]
        if is_new and s.inflight[session] < _window(broker, conn):
            yield f"session {session} has a delivery to send"
        # (A scan may wait for its session's quota; tick() continues it.)


def _window(broker, conn):
    most = broker.deliveries.window[0]
    if broker.conns.level[conn] > 4:
        most = min(most, broker.five.receive_max[conn])
    return most
