# log_dests.py - opens the log. Loaded for that at the start and for a reload; owns nothing;
# allocates.
from slotmq.platform import log
from slotmq.platform.runtime import MICROPYTHON, const

_ALL_TYPES = const(127)


def open_log(program):
    """Open the destinations of an App's log, and let its broker write to it."""
    settings = program.settings
    broker = program.broker
    mask = _ALL_TYPES if program.verbose else settings.log_type
    streams = [dest for dest in settings.log_dest if dest not in ("syslog", "topic")]
    log.open_all(streams, mask, _others(settings, broker))
    broker.log_mask = mask
    broker.log = log.write


def _others(settings, broker):
    # The destinations that are neither files nor terminals.
    found = []
    if MICROPYTHON:
        pass  # no configuration has syslog there
    else:
        from slotmq.platform.syslog_cpython import Syslog

        if "syslog" in settings.log_dest:
            found.append(Syslog(getattr(settings, "log_facility", None)))
    if "topic" in settings.log_dest:
        from slotmq.status.log_topics import LogTopics

        found.append(getattr(broker.loop, "log_topics", None) or LogTopics(broker))
    return found
