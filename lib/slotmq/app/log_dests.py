# log_dests.py - opens the destinations of the log that are neither files nor terminals. Loaded for
# that; owns nothing; allocates.
from slotmq.platform.runtime import MICROPYTHON


def opened(dest, broker):
    """An object with write(line) and close() for `syslog` or `topic`."""
    if MICROPYTHON:
        pass  # no configuration has syslog there
    else:
        from slotmq.platform.syslog_cpython import Syslog

        if dest == "syslog":
            return Syslog(getattr(broker.settings, "log_facility", None))
    from slotmq.status.log_topics import LogTopics

    return getattr(broker.loop, "log_topics", None) or LogTopics(broker)
