# sys_state.py - the state of $SYS: when the next round is due, hashes of the values sent last, the
# moving averages. Names and values of the topics are in status/sys_topics.py, which is loaded on
# demand. Allocates.
from array import array

from slotmq.constants import CARRY, NONE, PUBLISH_OUT
from slotmq.platform import heap, ondemand
from slotmq.platform.runtime import MICROPYTHON

_CARRIED = 7  # of stats, see timers.CARRY
_LOADS = b"\0\1\2\3\5\6"  # moving averages, per minute: indexes in stats
MINUTES = (1, 5, 15)

if not MICROPYTHON:
    from slotmq.status.sys_more_cpython import STATS

    _LOADS += STATS


class Sys:
    def __init__(self, broker, interval_s):
        self.broker = broker
        self.interval = interval_s * 10
        self.next_round = 0
        self.last = array("i", bytes(0))  # of each topic the hash of the value that was sent last
        self.before = [0] * len(_LOADS)
        self.loads = [0.0] * (len(_LOADS) * len(MINUTES))

    def scan(self, session, sub, text, n):
        """Give a new subscription the topics that match its filter, work[text:][:n]; False:
        some are still owed."""
        heap.lift()
        try:
            return self._texts().scan(self, session, sub, text, n)
        except MemoryError:
            return False  # tried again when there is heap for the texts
        finally:
            heap.drop()

    def _texts(self):
        return ondemand.take("status.sys_topics", self.broker.now)

    def stat(self, k):
        """A counter since the start."""
        carried = self.broker.carried[k] * CARRY if k < _CARRIED else 0
        return carried + self.broker.stats[k]

    def sent(self):
        return self.stat(1) + self.stat(PUBLISH_OUT)

    # Time

    def tick(self):
        """Called several times a second: publish the values that have changed, when that is
        due."""
        if self.broker.now >= self.next_round:
            self.next_round = self.broker.now + self.interval
            self._measure_loads()
            if self._is_wanted():
                self._texts().publish_changed(self)

    def _measure_loads(self):
        for k in range(len(_LOADS)):
            count = self.sent() if _LOADS[k] == 1 else self.stat(_LOADS[k])
            rate = (count - self.before[k]) * 600 / self.interval
            self.before[k] = count
            for j in range(len(MINUTES)):
                weight = min(1.0, self.interval / 600 / MINUTES[j])
                at = k * len(MINUTES) + j
                self.loads[at] += weight * (rate - self.loads[at])

    def _is_wanted(self):
        subs = self.broker.subscriptions
        return subs.nodes.find(subs.root, b"$SYS", 0, 4) != NONE
