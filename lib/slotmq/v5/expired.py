# expired.py - a table is full: drop what has expired first [5.0, 3.3.2.3.3]. Loaded on demand.
# Owns nothing. Does not allocate.
#
# The sweep of v5/extension.py comes by all slots, a few at a time. Here a whole list or table is
# looked at; what is looked at in vain is bounded for each tenth of a second (five.looks).
from slotmq.platform.runtime import const

_NONE = const(0xFFFF)


def drop(broker, session):
    """Drop what has expired of the session's queue, or else of retained messages and of the
    longest queue; -> how many that were."""
    five = broker.five
    found = 0 if session == _NONE else _of_queue(broker, five, session)
    if found:
        return found
    retained = broker.retained
    for at in range(min(retained.top, five.looks)):
        found += five.expire_retained(broker, at)
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
        if five.expire_delivery(broker, entry):
            found += 1
        else:
            five.looks -= 1
        entry = after
    return found
