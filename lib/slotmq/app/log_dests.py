# log_dests.py - opens and closes the destinations of the log, which platform/log.py owns. Loaded
# for that; allocates.
import sys

from slotmq.platform import log
from slotmq.platform.runtime import MICROPYTHON

if MICROPYTHON:
    private = open
else:
    from slotmq.platform.filesystem_cpython import private

_ALL_TYPES = 127


def start(broker, mask):
    """Open the log of a broker, at the start and after a reload. mask: True: all types."""
    mask = _ALL_TYPES if mask else broker.settings.log_type
    open_all(broker.settings.log_dest, mask, broker)
    broker.log_mask = log.outs and mask or 0  # no text is formatted for nobody
    broker.log = log.write


def open_all(dests, types, broker=None):
    """Open the destinations; again after a reload, since files may have been moved away. OSError:
    one cannot be opened, and the old ones stay."""
    outs: list = []
    try:
        for dest in dests:
            if dest[:5] == "file ":
                out = private(dest[5:].strip(), "a", 1)  # buffered by lines
            else:
                out = getattr(sys, dest, None)
            outs.append(out or _other(dest, broker))
    except OSError:
        _close(outs)
        raise
    close()
    log.mask = types
    log.outs.extend(outs)


def close():
    log.mask = 0
    _close(log.outs)


def _close(outs):
    while outs:
        out = outs.pop()
        if out not in (sys.stdout, sys.stderr):
            out.close()


def _other(dest, broker):
    # An object with write(line) and close() for `syslog` or `topic`.
    if MICROPYTHON:
        pass  # no configuration has syslog there
    else:
        from slotmq.platform.syslog_cpython import Syslog

        if dest == "syslog":
            return Syslog(getattr(broker.settings, "log_facility", None))
    from slotmq.status.log_topics import LogTopics

    return getattr(broker.loop, "log_topics", None) or LogTopics(broker)
