# deliveries_cpython.py - the contract of fast/deliveries_viper.py on CPython.
from slotmq.constants import (CHANGED, EXTRA, FIRST_FREE, FREE, IN_USE, LAST_FREE, MAX_INFLIGHT,
    MAX_QUEUED, MOST_IN_USE, NONE, PENDING_COUNT, PUBLISHES, QUOTAS_FROM, RELEASED, SENT_2,
    UNSAVED)
from slotmq.fast.messages_cpython import unref


def fan(columns, pool, i, end, msg, qos):
    """Queue msg for route entries i..end; -> the first with QoS 0 or no space, or end."""
    d, s, _, _ = columns
    while i < end:
        granted = min(pool[i] & 3, qos)
        session = pool[i] >> 2
        waiting = s.queued[session]
        most = d.window[MAX_QUEUED]
        if s.conn[session] != NONE:
            waiting += s.inflight[session]
            most += d.window[MAX_INFLIGHT]
        if not granted or waiting >= most or d.count[FIRST_FREE] == NONE:
            return i
        append(columns, session, msg, granted << 1)
        i += 1
    return end


def append(columns, session, msg, flags):
    """Queue msg at the session's end, with a reference; the entry, or NONE: full."""
    d, s, m, _ = columns
    count = d.count
    entry = count[FIRST_FREE]
    if entry == NONE:
        return NONE
    count[FIRST_FREE] = d.next[entry]
    if count[FIRST_FREE] == NONE:
        count[LAST_FREE] = NONE
    count[IN_USE] += 1
    if count[IN_USE] > count[MOST_IN_USE]:
        count[MOST_IN_USE] = count[IN_USE]
    d.session[entry] = session
    d.msg[entry] = msg
    d.state[entry] = 0
    d.flags[entry] = flags | CHANGED
    count[UNSAVED] = 1
    tail = s.tail[session]
    d.prev[entry] = tail
    d.next[entry] = NONE
    if tail == NONE:
        s.head[session] = entry
    else:
        d.next[tail] = entry
    s.tail[session] = entry
    if s.cursor[session] == NONE:
        s.cursor[session] = entry
    s.queued[session] += 1
    s.blocks[session] += blocks(m, msg)
    m.refs[msg] += 1
    if s.conn[session] != NONE and not d.is_pending[session]:
        mark_pending(columns, session)
    return entry


def blocks(m, msg):
    """Blocks of a message. sessions.blocks has each session's sum, since its list may be long
    (delivery/quota.py)."""
    size = m.arena.size
    return (m.topic_len[msg] + m.payload_len[msg] + size + 1) // size


def mark_pending(columns, session):
    """The session has something to send: the loop drains it (Broker.drain)."""
    d, _, _, _ = columns
    if not d.is_pending[session]:
        d.is_pending[session] = 1
        d.pending[PENDING_COUNT] += 1
        d.pending[d.pending[PENDING_COUNT]] = session


def have_space(columns, pool, i, end, size):
    """1: a message of that size can be queued for all route entries i..end, none of which has
    QoS 0; 0 also where their quotas of message slots and bytes must be checked."""
    d, s, m, _ = columns
    inflight, queued, slots, blocks = d.window
    arena = m.arena
    if d.count[IN_USE] + end - i > d.count[QUOTAS_FROM] or m.count[IN_USE] >= slots:
        return 0
    if (arena.free_blocks() - blocks) * arena.size < size:
        return 0
    for entry in pool[i:end]:
        session = entry >> 2
        waiting = s.queued[session]
        most = queued
        if s.conn[session] != NONE:
            waiting += s.inflight[session]
            most += inflight
        if not entry & 3 or waiting >= most:
            return 0
    return 1


def acked(columns, session, packet_id, state):
    """PUBACK, PUBCOMP: end the delivery with that packet id and state; PUBREC: free its message.
    NONE: there is none."""
    d, s, m, _ = columns
    entry = packet_id - 1
    if not 0 <= entry < d.slots or d.session[entry] != session or d.state[entry] != state:
        return NONE
    if state == SENT_2:
        d.state[entry] = RELEASED
        d.flags[entry] = CHANGED | 4
        d.count[UNSAVED] = 1
        s.blocks[session] -= blocks(m, d.msg[entry])
        unref(columns, d.msg[entry])
        d.msg[entry] = NONE
    else:
        finish(columns, entry)
    if s.cursor[session] != NONE or s.scans[session]:
        mark_pending(columns, session)
    return entry


def finish(columns, entry):
    """Remove an entry from its list and free it, and its message with the last reference."""
    d, s, m, _ = columns
    session = d.session[entry]
    before = d.prev[entry]
    after = d.next[entry]
    if before == NONE:
        s.head[session] = after
    else:
        d.next[before] = after
    if after == NONE:
        s.tail[session] = before
    else:
        d.prev[after] = before
    if s.cursor[session] == entry:
        s.cursor[session] = after
    if d.state[entry] == 0:
        s.queued[session] -= 1
    else:
        s.inflight[session] -= 1
    count = d.count
    count[UNSAVED] |= 3 if d.flags[entry] & 4 and d.state[entry] != RELEASED else 2
    d.state[entry] = FREE
    d.flags[entry] = CHANGED | 4
    d.session[entry] = NONE
    d.next[entry] = NONE
    if count[LAST_FREE] == NONE:
        count[FIRST_FREE] = entry
    else:
        d.next[count[LAST_FREE]] = entry
    count[LAST_FREE] = entry
    count[IN_USE] -= 1
    if d.msg[entry] != NONE:
        s.blocks[session] -= blocks(m, d.msg[entry])
        unref(columns, d.msg[entry])


def send(columns, session, conn, most):
    """PUBLISH the session's deliveries from its cursor on, `most` at a time.

    -> 0: none is left or the window is full; 1: the next one has no space;
    2: it is a PUBREL, has QoS 0, or needs other code (see deliveries_viper.py)."""
    d, s, m, c = columns
    five = c.level[conn] == 5
    entry = s.cursor[session]
    while entry != NONE:
        flags = d.flags[entry]
        state = d.state[entry]
        if state == RELEASED or not flags & 6:
            return 2
        if s.inflight[session] >= most:
            if state == 0:
                return 0
            if s.inflight[session] > most:
                return 2
        if flags >> 6 or m.flags[d.msg[entry]] & EXTRA:
            return 2
        packet = _packet(m, d.msg[entry], flags, entry + 1, b"\0" if five else b"")
        at = c.tx_end[conn]
        end = at + len(packet)
        if end > c.tx_limit[conn]:
            return 1
        if not c.out[conn]:
            c.mark_dirty(conn)
        c.tx[at:end] = packet
        c.tx_end[conn] = end
        c.counts[PUBLISHES] += 1
        if state == 0:
            d.state[entry] = flags >> 1 & 3
            d.flags[entry] = flags | 8
            s.queued[session] -= 1
            s.inflight[session] += 1
        entry = d.next[entry]
        s.cursor[session] = entry
    return 0


def _packet(m, msg, flags, packet_id, properties):
    text = m.arena.text(m.first[msg])
    split = m.topic_len[msg] + 2
    rest = len(text) + 2 + len(properties)
    head = bytearray((0x30 | flags,))
    while rest > 127:
        head.append(rest & 127 | 128)
        rest >>= 7
    head.append(rest)
    return head + text[:split] + packet_id.to_bytes(2, "big") + properties + text[split:]
