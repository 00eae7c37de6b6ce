# retry.py - sends again what was not acknowledged within retry_interval, as MQTT 3.1 asks for. A
# file of its own, since it is loaded only if that is set. Owns nothing. Does not allocate.
from slotmq.constants import NONE


def retry(broker):
    """Called several times a second: go through the sessions that have made no progress for so
    long."""
    sessions = broker.sessions
    interval = broker.settings.retry_interval * 10
    for session in range(sessions.slots):
        conn = sessions.conn[session]
        if conn != NONE and sessions.inflight[session] and _has_sent(broker, session):
            if broker.conns.level[conn] == 5:
                continue  # [5.0, 4.4.0-1]
            if broker.now - sessions.progress[session] >= interval:
                sessions.progress[session] = broker.now
                sessions.cursor[session] = sessions.head[session]
                broker.resume(conn)


def _has_sent(broker, session):
    # Was everything in the window sent on this connection, so that it waits for acknowledgements?
    cursor = broker.sessions.cursor[session]
    return cursor == NONE or broker.deliveries.state[cursor] == 0
