# log_sinks.py - the destinations of the log that are no streams: syslog, and topics below
# $SYS/broker/log/ (status/log_topics.py). Loaded while the log is opened; owns nothing; allocates.
from slotmq.platform.runtime import MICROPYTHON


def sinks(broker, settings):
    """A function of (type, text) for each of them in log_dest."""
    found = []
    if MICROPYTHON:
        pass  # no configuration has syslog there
    else:
        from slotmq.platform.syslog_cpython import opened

        if "syslog" in settings.log_dest:
            found.append(opened(getattr(settings, "log_facility", None)))
    if "topic" in settings.log_dest:
        from slotmq.status.log_topics import LogTopics

        topics = getattr(broker, "log_topics", None) or LogTopics(broker)
        found.append(topics.add)
    return found
