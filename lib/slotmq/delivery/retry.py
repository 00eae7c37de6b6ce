# retry.py - retry_interval: what MQTT 3.1 brokers did, send again what was not acknowledged
# in time. Loaded where that is configured. Does not allocate.
from slotmq.platform.runtime import const

_NONE = const(0xFFFF)


def retry(broker):
    """Several times a second: each session whose client has been silent for so long."""
    sessions = broker.sessions
    interval = broker.settings.retry_interval * 10
    for session in range(sessions.slots):
        conn = sessions.conn[session]
        if conn != _NONE and sessions.inflight[session] and _has_sent(broker, session):
            if broker.conns.level[conn] == 5:
                continue  # [5.0, 4.4.0-1]
            if broker.now - sessions.progress[session] >= interval:
                sessions.progress[session] = broker.now
                sessions.cursor[session] = sessions.head[session]
                broker.send_waiting(conn)


def _has_sent(broker, session):
    # Is all that is in the window sent, so that only an acknowledgement is missing?
    cursor = broker.sessions.cursor[session]
    return cursor == _NONE or broker.deliveries.state[cursor] == 0
