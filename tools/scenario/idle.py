"""How long a broker may be left alone that has nothing to read and nothing to write.

The real loop waits 250 ms at a time for its timers' sake. Three of its turns are as good as one
where no timer is near, and four would be a standstill to it, which forgives clients their silence.
"""

from typing import Any

WAIT_MS = 250
_LONG_MS = 3 * WAIT_MS
_MARGIN = 10  # tenths of a second, more than that
_FREE = 0
_CONNECTED = (2, 4)  # states of a connection: of version 3, of 5
_NONE = 0xFFFF


def wait_ms(broker: Any) -> int:
    """Until the next turn, so that whatever is due by time is done when it would be."""
    soon = broker.now + _MARGIN
    if broker.retry or _is_due(broker.five, broker.journal, soon):
        return WAIT_MS
    conns = broker.conns
    for conn in range(conns.top):
        state = conns.state[conn]
        if state == _FREE:
            continue
        if state not in _CONNECTED or conns.buffered[conn]:
            return WAIT_MS
        timeout = conns.keep_alive_timeout[conn]
        if timeout and soon - conns.last_activity[conn] >= timeout:
            return WAIT_MS
        session = conns.session[conn]
        if session != _NONE and broker.sessions.scans[session]:
            return WAIT_MS
    return _LONG_MS


def _is_due(five: Any, journal: Any, soon: int) -> bool:
    if five and (five.to_sweep or soon >= five.next_due):
        return True
    if not journal:
        return False
    waited = soon - journal.saved
    return bool(not journal.whole or waited >= min(journal.interval, journal.clock))
