"""How long an idle broker needs no turn.

The real loop waits 250 ms for events, then checks its timers. Where no timer is near, the
simulator makes one turn instead of three. It must not skip more: after four the loop takes the
gap for a standstill of the machine and extends the clients' keep-alive.
"""

from typing import Any

WAIT_MS = 250
_LONG_MS = 3 * WAIT_MS
_MARGIN = 10  # tenths of a second, more than _LONG_MS
_FREE = 0
_CONNECTED = (2, 4)  # states of a connection: MQTT 3, MQTT 5
_NONE = 0xFFFF


def wait_ms(broker: Any) -> int:
    """Until the next turn, so that every timer is handled when it is due."""
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
    return bool(not journal.whole or waited >= min(journal.interval, journal.time_interval))
