# said.py - bounds the log lines that any client can cause as often as it likes: what is denied,
# and requests that are not understood.
#
# Broker.said has a dict of when each of them was logged, by its hash: 64 at most, 8 in a small
# heap; and how many were left out. (And texts of delivery/refusing_bound.py.) Loaded on demand;
# owns nothing. Allocates.
from slotmq.constants import MINUTE
from slotmq.platform import ondemand

_LINES = 64
_LINES_SMALL = 8


def may(broker, bit, *key):
    """May the log have a line about this, a few texts as bytes? Not if it had one in the last
    minute, nor if it had too many about others; that lines are missing is said at once, and their
    number later."""
    if not broker._log_mask & bit:
        return False
    times = broker.said.setdefault("times", {})
    missing = broker.said.get("missing", 0)
    now = broker.now
    key = hash(b"\0".join(key))
    if _is_new(times, key, now):
        return False
    for each in list(times):
        if not _is_new(times, each, now):
            del times[each]
    if len(times) >= (_LINES_SMALL if ondemand.IS_SMALL else _LINES):
        if not missing:
            broker.log(bit, "Left out for up to a minute: further lines about what is denied.")
        broker.said["missing"] = missing + 1
        return False
    if missing:
        broker.log(bit, "Left out: %d lines about what was denied." % missing)
        broker.said["missing"] = 0
    times[key] = now
    return True


def _is_new(times, key, now):
    # Was it logged in the last minute? (The zero of now may have moved since.)
    return key in times and 0 <= now - times[key] < MINUTE
