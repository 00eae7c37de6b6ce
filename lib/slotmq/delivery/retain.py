# retain.py - stores retained messages and sends them to new subscriptions.
#
# A new subscription receives every retained message that matches. A scan over the table sends
# them. It stops when the client's buffer or queue is full and continues later from the slot it
# had reached, so that none is lost and no turn is long. After the last slot the scan goes through
# the $SYS topics, whose values are made then. Owns nothing: subscriptions.scan has the next slot
# of each subscription. Does not allocate, except for $SYS.
from slotmq.constants import EXTRA, HAS_ROW, NONE, PUBLISH_OUT
from slotmq.delivery.outgoing import send_message
from slotmq.delivery.routing import has_space
from slotmq.fast import append, topic_matches, unref

_RETAINED = 0x31
_SLOTS = 2048  # that one call of scan() looks at


def set_message(broker, buf, topic, topic_len, msg):
    """Make a stored message the retained message of its topic; NONE or an empty one removes the
    topic's [3.3.1-5]."""
    retained = broker.retained
    messages = broker.messages
    slot = retained.find(buf, topic, topic_len)
    if msg == NONE or messages.payload_len[msg] == 0:
        if slot != NONE:
            unref(broker.tables, retained.remove(slot))
        return
    if broker.journal_full and not messages.flags[msg] & HAS_ROW:
        retained.refused += 1
        return
    if slot != NONE:
        unref(broker.tables, retained.put(slot, msg))
    elif retained.add(buf, topic, topic_len, msg) == NONE:
        found = broker.five and broker.five.reclaim()
        if not found or retained.add(buf, topic, topic_len, msg) == NONE:
            retained.refused += 1
            return
    messages.refs[msg] += 1


def start_scan(broker, session, sub):
    """A new subscription is owed the retained messages [3.3.1-6]: mark it for scan(), which
    Broker.resume() calls once the packet is handled."""
    subs = broker.subscriptions
    if not subs.scan[sub]:
        broker.sessions.scans[session] += 1
    subs.scan[sub] = 1


def scan(broker, session):
    """Continue the scans of the session's new subscriptions, _SLOTS slots of the table at most.

    The rest follows in the next turn, which does not wait (broker.turn_soon)."""
    broker.scan_left = _SLOTS
    sessions = broker.sessions
    subs = broker.subscriptions
    sub = sessions.first_sub[session]
    while sub != NONE and sessions.scans[session]:
        if subs.scan[sub]:
            if not _scan_one(broker, session, sub):
                return
            subs.scan[sub] = 0
            sessions.scans[session] -= 1
        sub = subs.next_in_session[sub]


def _scan_one(broker, session, sub):
    # Continue the scan of one subscription; True: it is complete.
    subs = broker.subscriptions
    retained = broker.retained
    work = broker.work
    end = len(work)
    text = subs.filter_text(subs.node[sub], work, end)
    n = end - text
    if not _has_wildcard(work, text, end):
        slot = retained.find(work, text, n)
        if slot != NONE:
            return deliver(broker, session, sub, retained.msg[slot])
        return work[text] != 36 or _has_sys(broker, session, sub, text, n)
    if not (retained.scan_slots or _scan_slots)(broker, session, sub, text, n):
        return False
    return work[text] != 36 or _has_sys(broker, session, sub, text, n)


def _scan_slots(broker, session, sub, text, n):
    # Scan the table for a filter with wildcards; True: the last slot was reached.
    subs = broker.subscriptions
    retained = broker.retained
    msgs = retained.msg
    names = retained.names
    work = broker.work
    conn = broker.sessions.conn[session]
    five = 4 < broker.conns.level[conn] < 7 and broker.five  # at 6 there is a packet_max
    has_more = five and (five.identifier[sub] or five.packet_max[conn])
    is_plain = not (subs.qos[sub] or broker.acl or has_more)
    slot = subs.scan[sub] - 1
    end = min(retained.top, slot + broker.scan_left)
    begun = slot
    while slot < end:
        msg = msgs[slot]
        if msg != NONE and topic_matches(work, text, n, work, 0, names.read(slot, work, 0)):
            if not (
                is_plain and _put(broker, conn, msg, five) or deliver(broker, session, sub, msg)
            ):
                break
        slot += 1
    broker.scan_left -= slot - begun
    subs.scan[sub] = slot + 1
    if slot == end < retained.top:
        broker.turn_soon = 1
    return slot >= retained.top


def _put(broker, conn, msg, five):
    # Send it in the most frequent case: a short message, at QoS 0, without properties. False: not
    # sent.
    messages = broker.messages
    conns = broker.conns
    n = messages.topic_len[msg] + 2
    size = messages.payload_len[msg]
    at = conns.tx_end[conn]
    end = at + 2 + n + size
    if five:
        end += 1
    if end - at > 129 or messages.flags[msg] & EXTRA or end > conns.tx_limit[conn]:
        return False
    tx = conns.tx
    tx[at] = _RETAINED
    tx[at + 1] = end - at - 2
    messages.arena.move(messages.first[msg], 0, tx, at + 2, n + size, 1)
    if five:  # the payload one byte later
        messages.arena.move(messages.first[msg], n, tx, end - size, size, 1)
        tx[end - size - 1] = 0  # length of the properties
    conns.tx_end[conn] = end
    if not conns.out[conn]:
        conns.mark_dirty(conn)
    broker.stats[PUBLISH_OUT] += 1
    return True


def _has_sys(broker, session, sub, text, n):
    # The values of $SYS are made on the way: this may allocate.
    return broker.sys is None or broker.sys.scan(session, sub, text, n)


def deliver(broker, session, sub, msg):
    """Send or queue a retained message for a subscription of the session; False: not now."""
    if broker.acl and not broker.acl.may_read(session, msg):
        return True
    granted = broker.subscriptions.qos[sub]
    if granted and not broker.upgrade_qos:
        granted = min(granted, broker.messages.flags[msg] >> 1 & 3)
    five = broker.five
    if not granted:
        if five:
            five.next_ident = five.identifier[sub]
        return send_message(broker, broker.sessions.conn[session], msg, _RETAINED, 0)
    if not has_space(broker, session, msg):
        return False
    entry = append(broker.tables, session, msg, granted << 1 | 1)
    if five:
        five.set_subscription(broker, entry, NONE, five.identifier[sub])
    return True


def _has_wildcard(buf, i, end):
    while i < end:
        if buf[i] == 43 or buf[i] == 35:
            return True
        i += 1
    return False
