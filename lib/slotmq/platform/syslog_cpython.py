# syslog_cpython.py - the system's log as a destination, on CPython. Owns nothing; allocates.
import syslog

from slotmq.platform import log

# By the bits of platform/log.py; as in mosquitto
_PRIORITIES = {
    0: syslog.LOG_NOTICE,
    1: syslog.LOG_ERR,
    2: syslog.LOG_WARNING,
    4: syslog.LOG_NOTICE,
    8: syslog.LOG_INFO,
    16: syslog.LOG_NOTICE,
    32: syslog.LOG_NOTICE,
    64: syslog.LOG_DEBUG,
}
_LOCAL_STEP = syslog.LOG_LOCAL1 - syslog.LOG_LOCAL0


class Syslog:
    """facility: 0 to 7 for local0 to local7, or None for daemon."""

    def __init__(self, facility):
        daemon = facility is None
        where = syslog.LOG_DAEMON if daemon else syslog.LOG_LOCAL0 + facility * _LOCAL_STEP
        syslog.openlog("slotmq", syslog.LOG_PID, where)

    def write(self, line):
        syslog.syslog(_PRIORITIES[log.current], line.partition(": ")[2].rstrip("\n"))

    def close(self):
        syslog.closelog()
