# storms.py - retained messages to a new subscriber where the heap is large: in place of the loop
# of delivery/retain.py, many in one call. Owns nothing. Allocates only where
# a scan begins.
from slotmq.delivery.retain import deliver
from slotmq.fast import topic_matches
from slotmq.fast.storms import put_retained
from slotmq.platform import heap
from slotmq.platform.runtime import MICROPYTHON, const

_NONE = const(0xFFFF)
_EXTRA = const(8)
_NOT_0 = const(6)
_LARGER = const(4096)  # bytes: more than a gap
_GAPS = const(64)


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
    look_at = _EXTRA | _NOT_0 if subs.qos[sub] else _EXTRA  # flags of what deliver() must send
    # At 6, of a bridge, there is a packet_max
    puts = not (broker.acl or level == 6 or subs.qos[sub] and broker.upgrade_qos)
    slot = subs.scan[sub] - 1
    MICROPYTHON and not slot and _fill_gaps()
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
        if msg != _NONE:
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


def _fill_gaps():
    # MicroPython searches for memory from the first gap of one block on. Where such gaps are
    # before the tables, each call in SUBSCRIBE and UNSUBSCRIBE would search all tables, which
    # took three times as long as to send 1,000 messages. The smallest objects fill these gaps.
    heap.lift()
    behind = id(bytearray(_LARGER))
    for _ in range(_GAPS):  # not until it is reached: a collection would free what filled them
        if id(object()) > behind:
            break
    heap.drop()
