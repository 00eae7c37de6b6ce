# expired_slots.py - makes space: drops messages that have expired [5.0, 3.3.2.3.3], and says which
# connection gives up its topic aliases. Loaded on demand: while there are any messages that will
# expire, and where a table is full. Owns nothing.
#
# A look counts the messages that have expired and those that will. Only if any has does it mark
# them, which allocates, and go through retained messages and deliveries.
from slotmq.constants import DROPPED, EXTRA, NONE, QUEUED
from slotmq.fast import finish, unref


def forget(broker):
    """Drop what has expired of retained messages and of all queues; -> how many that were."""
    five = broker.five
    expires = five.expires
    refs, flags = broker.messages.refs, broker.messages.flags
    now = broker.now
    gone = later = 0
    for msg in range(len(expires)):
        if expires[msg] and refs[msg] and flags[msg] & EXTRA:
            if expires[msg] > now or five.remaining(broker, msg):
                later += 1
            else:
                gone += 1
    for msg in broker.sessions.will:
        # It expires from its publication on.
        left = -1 if msg == NONE else five.remaining(broker, msg)
        if left > 0:
            later -= 1
        elif not left:
            gone -= 1
    found = _drop(broker, _marked(broker)) if gone else 0
    five.to_sweep = later > 0
    return found


def _marked(broker):
    five = broker.five
    expires = five.expires
    marks = bytearray(len(expires))
    for msg in range(len(expires)):
        if expires[msg] and expires[msg] <= broker.now and not five.remaining(broker, msg):
            marks[msg] = 1
    return marks


def _drop(broker, marks):
    found = 0
    retained = broker.retained
    for at in range(retained.top):
        msg = retained.msg[at]
        if msg != NONE and marks[msg]:
            unref(broker.tables, retained.remove(at))
            found += 1
    deliveries = broker.deliveries
    state, msgs = deliveries.state, deliveries.msg
    for at in range(deliveries.slots):
        if state[at] == QUEUED and marks[msgs[at]] and not deliveries.may_be_known(at):
            broker.stats[DROPPED] += 1
            finish(broker.tables, at)
            found += 1
    return found


def search(aliases, conn, n):
    """The connection whose aliases take most blocks; those of `conn` are counted with n bytes
    more."""
    size = aliases.arena.size
    found = conn
    most = _blocks(aliases, conn) + (n + size - 1) // size
    for other in range(len(aliases.offered)):
        blocks = _blocks(aliases, other)
        if blocks > most:
            most = blocks
            found = other
    return found


def _blocks(aliases, conn):
    size = aliases.arena.size
    blocks = 0
    for at in range(conn * aliases.most, (conn + 1) * aliases.most):
        blocks += (aliases.inward_len[at] + size - 1) // size
    return blocks
