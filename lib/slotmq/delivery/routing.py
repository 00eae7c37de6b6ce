# routing.py - finds the receivers of a message; the only code that sends QoS 1 and 2 PUBLISH.
#
# A QoS 0 packet is copied from the receive buffer to the outgoing buffers (publish_packet).
# Every other message is stored in a message slot, queued for each receiver (fan_out) and sent
# by drain(). drain() also sends again after a reconnect and continues when a socket is writable
# again. The broker calls it when the whole input of a connection has been handled: once for all
# messages, and after the acknowledgements were placed. Owns nothing. Does not allocate.
#
# flags are the lower four bits of PUBLISH's first byte: DUP 8, QoS << 1, RETAIN 1.
from slotmq.constants import (AMPLE, BLOCKED, DROPPED, DUP, END, FIRST_FREE, INFLIGHT_BYTES,
    IN_USE, MAX_INFLIGHT, MAX_QUEUED, MORE_QUEUED, NONE, NOTED_QOS_0, PACKETS_OUT, PAYLOAD,
    PUBLISH, PUBREL, QOS_0, QUEUED, QUOTAS_FROM, QUOTA_BLOCKS, QUOTA_SLOTS, RELEASED, START, TOPIC,
    TOPIC_LEN, TOTAL, WARNING)
from slotmq.delivery.encode import put_short
from slotmq.delivery.outgoing import send_message, send_packet, space
from slotmq.fast import append, fan, finish, place, send, unref
from slotmq.fast import store as take_message
from slotmq.platform import heap, ondemand

TRIES = 16  # messages dropped to make space for one
_NOTED_DELIVERIES = 22
_NOTED_MESSAGES = 23
_COUNT_MOST = 0xFFFFFFF


def route(broker, buf, topic, topic_len):
    """The slot in routes of a valid topic name: the range of its receivers in the route pool."""
    subs = broker.subscriptions
    slot = subs.routes.find(buf, topic, topic_len)
    if slot >= 0 and subs.routes.mid[slot] + subs.asks == subs.routes.end[slot]:
        subs.needs_options = 0
        return slot
    return subs.match(buf, topic, topic_len)


def publish_packet(broker, pkt, buf, slot):
    """Copy a QoS 0 PUBLISH to all receivers of a route."""
    subs = broker.subscriptions
    conns = broker.conns
    i = subs.routes.first[slot]
    end = subs.routes.end[slot]
    if subs.needs_options:
        broker.five.publish_packet(broker, pkt, buf, slot)
        return
    if broker.queue_qos0:
        _publish_or_queue(broker, pkt, buf, i, end)
        return
    msg = NONE
    while True:
        i = place(conns.columns, i, end, buf, pkt[START], pkt[TOTAL])
        if i == end:
            break
        msg = _place_slowly(broker, pkt, buf, subs.pool[i] >> 2, msg)
        i += 1
    if msg != NONE:
        unref(broker.tables, msg)


def _place_slowly(broker, pkt, buf, session, msg):
    # To the receiver at which place() stopped: its buffer is full, or it is the sender. msg: the
    # message, if it is stored already; -> the same afterwards.
    conn = broker.sessions.conn[session]
    if conn == broker.reading:
        # To its own sender, whose free space is reserved for answers until its input is handled
        broker.queued_to_self = True
        broker.conns.tx_limit[conn] = broker.conns.tx_end[conn]
    else:
        slow = is_slow(broker, session, pkt[TOTAL])
        if slow <= 0:
            if slow or not send_packet(broker, conn, buf, pkt[START], pkt[TOTAL]):
                drop(broker, session, NONE, pkt[TOTAL])
            return msg
    if msg == NONE:
        msg = store(broker, pkt, buf, 0)
    if msg != NONE:
        enqueue(broker, session, msg, 0)
    return msg


def is_slow(broker, session, size):
    """Must a QoS 0 message of that size be queued behind one that goes out in chunks, or that
    waits for that? Only while no quota would have to be asked, and with 64 KB for messages:
    in less, those for a client that does not read would take the space of QoS 1 and 2. Nor behind
    QoS 1 and 2, since later ones would overtake it while the window is full. -1: it is dropped,
    else it would overtake."""
    flags = broker.deliveries.flags
    first = entry = broker.sessions.cursor[session]
    if first == NONE and broker.conns.chunked_msg[broker.sessions.conn[session]] == NONE:
        return 0
    while entry != NONE and not flags[entry] & 6:
        entry = broker.deliveries.next[entry]
    if entry == NONE and broker.limits.message_bytes >= AMPLE:
        if not is_tight(broker, size, 1):
            return 1
    return 0 if first == entry else -1


def drop(broker, session, msg, size):
    """Count a QoS 0 message for which the client's buffer has no space; see note()."""
    note(broker, NOTED_QOS_0, session, msg, size)
    stats = broker.stats
    stats[DROPPED] += 1
    stats[QOS_0] = stats[QOS_0] + 1 & _COUNT_MOST


def _publish_or_queue(broker, pkt, buf, i, end):
    # queue_qos0_messages: a session that is offline or has a queue gets it at the queue's end.
    msg = NONE
    while i < end:
        session = broker.subscriptions.pool[i] >> 2
        if not must_queue(broker, session):
            if place(broker.conns.columns, i, i + 1, buf, pkt[START], pkt[TOTAL]) == i:
                msg = _place_slowly(broker, pkt, buf, session, msg)
        else:
            if msg == NONE:
                msg = store(broker, pkt, buf, 0)
            if msg != NONE:
                enqueue(broker, session, msg, 0)
        i += 1
    if msg != NONE:
        unref(broker.tables, msg)


def must_queue(broker, session):
    """With queue_qos0_messages: must a QoS 0 message be queued?"""
    sessions = broker.sessions
    return sessions.conn[session] == NONE or sessions.cursor[session] != NONE


def fan_out(broker, msg, qos, slot):
    """Queue a stored message for all receivers of a route, each at its effective QoS [3.8.4-6]."""
    subs = broker.subscriptions
    if subs.needs_options:
        broker.five.fan_out(broker, msg, qos, slot)
        return
    i = subs.routes.first[slot]
    end = subs.routes.end[slot]
    tight = is_tight(broker, 0, end - i)
    if broker.upgrade_qos:
        qos = 3
    while True:
        if not tight:
            i = fan(broker.tables, subs.pool, i, end, msg, qos)
        if i == end:
            return
        if qos and subs.pool[i] & 3:
            enqueue(broker, subs.pool[i] >> 2, msg, min(qos, subs.pool[i] & 3) << 1)
        else:
            _send_qos0(broker, subs.pool[i] >> 2, msg)
        i += 1


def _send_qos0(broker, session, msg):
    conn = broker.sessions.conn[session]
    slow = way(broker, session, 0)
    if slow is None:
        return
    if slow <= 0:
        if slow == 0 and send_message(broker, conn, msg, PUBLISH, 0):
            return
        if not must_wait(broker, conn):
            drop(broker, session, msg, 0)
            return
    enqueue(broker, session, msg, 0)


def must_wait(broker, conn):
    """Is there no space only because the journal allows no flush in the middle of a packet?"""
    return broker.journal and broker.no_commit and broker.conns.out[conn] != BLOCKED


def way(broker, session, size):
    """How does QoS 0 leave that may be stored? As is_slow(); None: its client is away."""
    conn = broker.sessions.conn[session]
    if broker.queue_qos0 and must_queue(broker, session):
        return 1
    if conn == NONE:
        return None
    if conn == broker.reading:
        return 1
    if broker.journal and broker.no_commit:
        # Was one queued because of must_wait()? Then later ones must follow it.
        flags = broker.deliveries.flags
        entry = broker.sessions.cursor[session]
        while entry != NONE and flags[entry] & 6:
            entry = broker.deliveries.next[entry]
        if entry != NONE:
            return 1
    return is_slow(broker, session, size)


def enqueue(broker, session, msg, flags):
    """Queue a stored message for one session, if there is space or space can be made.

    -> the entry, or NONE."""
    freed = 0
    for _ in range(TRIES):
        if has_space(broker, session, msg, freed):
            return append(broker.tables, session, msg, flags)
        if broker.five and broker.five.reclaim():
            continue
        note(broker, _NOTED_DELIVERIES, session, msg, 0)
        if broker.settings.when_full["deliveries"] != "drop_oldest":
            break
        blocks = drop_oldest(broker, session)
        if not blocks:
            break
        freed += blocks
    broker.deliveries.refused += 1
    broker.stats[DROPPED] += 1
    if broker.bridges:
        broker.bridges.refused(session)
    return NONE


def has_space(broker, session, msg=NONE, freed=0, size=0):
    """May one more message wait for this session? It is in slot msg, or has `size` bytes and no
    slot yet. freed: blocks that drop_oldest() has freed for it."""
    sessions = broker.sessions
    waiting = sessions.queued[session]
    window = broker.deliveries.window
    most = window[MAX_QUEUED]
    if sessions.conn[session] != NONE:
        waiting += sessions.inflight[session]
        most += window[MAX_INFLIGHT]
    count = broker.deliveries.count
    if waiting >= most + count[MORE_QUEUED] or count[FIRST_FREE] == NONE:
        return False
    return may_hold(broker, session, msg, size, freed, 1 if waiting < most else NONE)


def is_tight(broker, size, n):
    """Must the quotas of sessions be checked before a message of `size` bytes (0: it has a slot
    already) and n deliveries are added? Not as long as less is in use than the smallest quota."""
    messages = broker.messages
    window = broker.deliveries.window
    arena = messages.arena
    if messages.count[IN_USE] + (size > 0) > window[QUOTA_SLOTS]:
        return True
    count = broker.deliveries.count
    if count[IN_USE] + n > count[QUOTAS_FROM]:
        return True
    return (arena.free_blocks() - window[QUOTA_BLOCKS]) * arena.size < size


def may_hold(broker, session, msg, size, freed, n):
    """Is the message within the session's quota? msg, size, freed: see has_space(); n: deliveries
    that it takes, 1 or 0, or NONE: 1, and so many wait that their bytes count."""
    if not is_tight(broker, size, n):
        return True
    return ask_quota(broker, session, msg, size, freed, n, True)


def ask_quota(broker, session, msg, size, freed, n, answer):
    """What may_hold() of delivery/quota.py says, or `answer` if there is no heap for it. (No tuple
    of arguments: the heap may be locked.)"""
    heap.lift()
    try:
        quota = ondemand.take("delivery.quota", broker.now)
        answer = quota.may_hold(broker, session, msg, size, freed, n)
    except MemoryError:
        pass
    heap.drop()
    return answer


def may_wait_for_pubrel(broker, session, size):
    """With qos2_delivery release: may the session's message of `size` bytes wait in a slot for its
    PUBREL? If not, it is counted as refused."""
    full = broker.journal_full and not broker.sessions.clean[session]
    if not full and may_hold(broker, session, NONE, size, 0, 0):
        return True
    return not refuse(broker, session, size)


def is_refused(broker, slot, qos):
    """Is the journal full, and would a message of that QoS on this route need a row? Then it is
    counted as refused."""
    if not broker.journal_full or not qos:
        return False
    with heap.lifted:
        needs = ondemand.take("journal.compaction", broker.now).needs_row(broker, slot)
    return needs and refuse(broker, NONE, 1)


def note(broker, what, session, msg, size):
    """Have delivery/refusing_bound.py note for the log which bound refuses this, the first one
    since its last line about that."""
    if broker._log_mask & WARNING and not broker.stats[what]:
        broker.stats[what] = 1
        heap.lift()
        try:
            bound = ondemand.take("delivery.refusing_bound", broker.now)
            bound.report(broker, what, session, msg, size)
        except MemoryError:
            pass
        heap.drop()


def refuse(broker, session, size):
    """Count a message that is refused since there is no space; -> True."""
    note(broker, _NOTED_MESSAGES, session, NONE, size)
    broker.messages.refused += 1
    broker.stats[DROPPED] += 1
    return True


def store(broker, pkt, buf, flags):
    """Store the PUBLISH in a message slot, with one reference; NONE: there is no space."""
    topic = pkt[TOPIC]
    payload = pkt[PAYLOAD]
    size = pkt[END] - payload
    for _ in range(TRIES):
        msg = take_message(broker.tables, buf, topic, pkt[TOPIC_LEN], payload, size, flags)
        if msg != NONE:
            return msg
        if not make_space(broker):
            break
    refuse(broker, NONE, pkt[TOPIC_LEN] + 2 + size)
    return NONE


def make_space(broker):
    """Drop what has expired, or a message of the longest queue if that is the policy; -> its
    blocks, or 0."""
    if broker.five and broker.five.reclaim():
        return 1
    if broker.settings.when_full["messages"] != "drop_oldest":
        return 0
    queued = broker.sessions.queued
    longest = 0
    for session in range(len(queued)):
        if queued[session] > queued[longest]:
            longest = session
    return drop_oldest(broker, longest)


def drop_oldest(broker, session):
    """Drop the session's oldest message that was never sent; -> its blocks, or 0."""
    entry = broker.deliveries.oldest_queued(broker.sessions, session)
    if entry == NONE:
        return 0
    broker.deliveries.refused += 1
    broker.stats[DROPPED] += 1
    if broker.bridges:
        broker.bridges.refused(session)
    n = broker.messages.blocks(broker.deliveries.msg[entry])
    finish(broker.tables, entry)
    return n


def drain(broker, session):
    """Send from the session's cursor, until the window or the buffer is full."""
    conn = broker.sessions.conn[session]
    broker.sessions.progress[session] = broker.now
    if broker.conns.level[conn] > 4:
        broker.five.drain(broker, session)
        return
    most = broker.deliveries.window[MAX_INFLIGHT]
    if broker.deliveries.count[INFLIGHT_BYTES]:
        most = ask_quota(broker, session, most, 0, 0, -1, most)
    while send(broker.tables, session, conn, most) and _send_slowly(broker, conn, session):
        pass


def _send_slowly(broker, conn, session):
    # The delivery at the cursor, which send() left: there is no space for it, or it is
    # a PUBREL or a queued QoS 0 message. False: not now.
    deliveries = broker.deliveries
    entry = broker.sessions.cursor[session]
    flags = deliveries.flags[entry]
    if deliveries.state[entry] == RELEASED:
        at = space(broker, conn, 4)
        if at < 0:
            return False
        put_short(broker.conns.tx, at, PUBREL, entry + 1)
        broker.stats[PACKETS_OUT] += 1
    else:
        flags &= 15
        done = send_message(broker, conn, deliveries.msg[entry], PUBLISH | flags, entry + 1)
        if not done:
            return False
        if done < 0 or not flags & 6:
            finish(broker.tables, entry)
            return True
        mark_sent(broker, session, entry)
    broker.sessions.cursor[session] = deliveries.next[entry]
    return True


def mark_sent(broker, session, entry):
    """The delivery is in the outgoing buffer: move it from the queue to the window."""
    deliveries = broker.deliveries
    if deliveries.state[entry] == QUEUED:
        deliveries.state[entry] = deliveries.flags[entry] >> 1 & 3
        deliveries.flags[entry] |= DUP
        broker.sessions.queued[session] -= 1
        broker.sessions.inflight[session] += 1
