# storms_cpython.py - retained messages to a new subscriber: in place of the loop of
# delivery/retain.py, many in one call, with a regular expression and one join. Owns nothing.
import re

from slotmq.constants import EXTRA, NONE, PUBLISHES
from slotmq.delivery.retain import deliver
from slotmq.fast import topic_matches

_NOT_0 = 6
_NO_PACKET = 1 << 14  # a Remaining Length that the fast path leaves
# The fixed header, by its Remaining Length
_HEADS = [bytes((0x31, n)) for n in range(128)]
_HEADS += [bytes((0x31, n & 127 | 128, n >> 7)) for n in range(128, _NO_PACKET)]


def make(broker):
    """Let scan() of delivery/retain.py use this file."""
    broker.retained.scan_slots = _scan_slots


def _scan_slots(broker, session, sub, text, n):
    # Scan the table for a filter with wildcards; True: the last slot was reached.
    subs = broker.subscriptions
    retained = broker.retained
    msgs = retained.msg
    work = broker.work
    conn = broker.sessions.conn[session]
    level = broker.conns.level[conn]
    ident = most = 0
    if level == 5:
        ident = broker.five.identifier[sub]
        most = broker.five.packet_max[conn]
    look_at = EXTRA | _NOT_0 if subs.qos[sub] else EXTRA  # flags of what deliver() must send
    # At 6, of a bridge, there is a packet_max
    puts = not (broker.acl or level == 6 or subs.qos[sub] and broker.upgrade_qos)
    slot = subs.scan[sub] - 1
    end = min(retained.top, slot + broker.scan_left)
    broker.scan_left -= end - slot
    while slot < end:
        if puts:
            slot = put_retained(
                broker.tables, msgs, slot, end, conn, work, text, n, ident, most, look_at
            )
            if slot == end:
                break
        msg = msgs[slot]
        if msg != NONE:
            size = retained.names.read(slot, work, 0)
            if topic_matches(work, text, n, work, 0, size):
                if not deliver(broker, session, sub, msg):
                    break
        slot += 1
    broker.scan_left += end - slot
    subs.scan[sub] = slot + 1
    if slot == end < retained.top:
        broker.turn_soon = 1
    return slot >= retained.top


def put_retained(tables, msgs, i, end, conn, buf, at, n, ident, most, look_at):
    """Put those messages of msgs[i:end] that match the filter buf[at:at + n] into tx; -> end, or
    the first that must be looked at."""
    _, _, m, c = tables
    matches = _expression(bytes(buf[at : at + n])).match
    own = _own_properties(ident) if c.level[conn] == 5 else b""
    firsts, lengths, flags, text_of = m.first, m.topic_len, m.flags, m.arena.text
    size = m.arena.size
    space = c.tx_limit[conn] - c.tx_end[conn]
    most = most or _NO_PACKET
    parts = []
    for msg in msgs[i:end]:
        if msg != NONE:
            stop = lengths[msg] + 2
            if stop > size:
                break
            text = text_of(firsts[msg])
            if matches(text, 2, stop):
                rest = len(text) + len(own)
                if rest >= _NO_PACKET or flags[msg] & look_at:
                    break
                head = _HEADS[rest]
                rest += len(head)
                if rest > space or rest > most:
                    break
                space -= rest
                parts += (head, text[:stop], own, text[stop:]) if own else (head, text)
        i += 1
    if parts:
        at = c.tx_end[conn]
        c.tx_end[conn] = stop = c.tx_limit[conn] - space
        c.tx[at:stop] = b"".join(parts)
        c.counts[PUBLISHES] += len(parts) // (4 if own else 2)
        if not c.out[conn]:
            c.mark_dirty(conn)
    return i


def _expression(topic_filter):
    # What the topic names begin with that a filter matches [4.7].
    levels = topic_filter.split(b"/")
    parts = [b"[^/]*" if level == b"+" else re.escape(level) for level in levels]
    text = b"/".join(parts) + b"\\Z"
    if levels[-1] == b"#":
        text = b"/".join(parts[:-1]) + b"(?:/|\\Z)" if levels[1:] else b""
    return re.compile(b"(?!\\$)" + text if levels[0] in (b"+", b"#") else text)


def _own_properties(ident):
    # Their length, and the identifier of the subscription.
    number = []
    while ident:
        number.append(ident & 127 | 128)
        ident >>= 7
    if not number:
        return b"\0"
    number[-1] &= 127
    return bytes((1 + len(number), 0x0B, *number))
