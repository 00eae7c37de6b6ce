# expired_slots.py - drops messages that have expired [5.0, 3.3.2.3.3]. Loaded on demand: while
# there are any that will expire, and where a table is full. Owns nothing. Does not allocate.
#
# A sweep comes by all slots, a few at a time, in some ten seconds. Where a table is full, a whole
# list or table is looked at; what is looked at in vain is bounded for each tick (five.looks).
from slotmq.fast import finish, unref
from slotmq.platform.runtime import const

_NONE = const(0xFFFF)
_SWEEP = const(-1)
_SWEPT = const(32)  # slots at a time
_QUEUED = const(0)
_DROPPED = const(4)


def forget(broker, session):
    """Drop what has expired of the session's queue, or else of retained messages and of the
    longest queue; session SWEEP: of the next slots; -> how many that were."""
    five = broker.five
    if session == _SWEEP:
        return _sweep(broker, five)
    found = 0 if session == _NONE else _of_queue(broker, five, session)
    if found:
        return found
    retained = broker.retained
    for at in range(min(retained.top, five.looks)):
        found += _expire_retained(broker, at)
    five.looks = max(0, five.looks - retained.top + found)
    queued = broker.sessions.queued
    longest = 0
    for other in range(len(queued)):
        if queued[other] > queued[longest]:
            longest = other
    return found or _of_queue(broker, five, longest)


def _of_queue(broker, five, session):
    entry = broker.sessions.cursor[session]
    found = 0
    while entry != _NONE and five.looks:
        after = broker.deliveries.next[entry]
        if _expire_delivery(broker, entry):
            found += 1
        else:
            five.looks -= 1
        entry = after
    return found


def _sweep(broker, five):
    # Another sweep follows as long as there are messages that will expire.
    retained, deliveries = broker.retained.slots, broker.deliveries.slots
    end = five.to_sweep
    first = five.to_sweep = max(0, end - max(_SWEPT, max(retained, deliveries) >> 6))
    found = 0
    for at in range(first, end):
        if at < retained:
            found += _expire_retained(broker, at)
        if at < deliveries:
            found += _expire_delivery(broker, at)
    if not first and five.goes_on:
        five.goes_on = False
        five.expiring(broker)
    return found


def _expire_retained(broker, at):
    # -> had it expired?
    if not _has_expired(broker, broker.retained.msg[at]):
        return 0
    unref(broker.tables, broker.retained.remove(at))
    return 1


def _expire_delivery(broker, at):
    # Of a delivery that waits; -> had its message expired?
    deliveries = broker.deliveries
    if deliveries.state[at] != _QUEUED or not _has_expired(broker, deliveries.msg[at]):
        return 0
    if deliveries.may_be_known(at):
        return 0
    broker.stats[_DROPPED] += 1
    finish(broker.tables, at)
    return 1


def _has_expired(broker, msg):
    left = -1 if msg == _NONE else broker.five.remaining(broker, msg)
    if left > 0:
        broker.five.goes_on = True
    return left == 0
