# sysinfo.py - the $SYS topics: what the broker says of itself.
#
# Nothing is stored for them: a value is made when a subscription asks for it (as if
# it were retained) or when a round of sys_interval finds that it has changed. Names
# are mosquitto's where they mean something here; slots/<table>/high and refused are
# our own. One text, a line a topic: the name behind $SYS/broker/ and where its
# value is: a path of attributes and indexes from the broker, or of Sys with a dot
# first. Lives on the control plane: allocates.
import gc
from array import array

from slotmq.runtime import MICROPYTHON, const, store, unref
from slotmq.timers import CARRY

_NONE = const(0xFFFF)
_PUBLISH_OUT = const(3)
TOPICS = """\
version .version
uptime .uptime
clients/total .known
clients/connected .connected
clients/active .connected
clients/disconnected .offline
clients/inactive .offline
clients/maximum sessions.high
messages/received .stat 0
messages/sent .sent
publish/messages/received .stat 2
publish/messages/sent .stat 3
publish/messages/dropped .stat 4
bytes/received .stat 5
bytes/sent .stat 6
messages/stored messages.count.0
store/messages/count messages.count.0
store/messages/bytes .stored
subscriptions/count subscriptions.count
retained messages/count .retained
heap/current .heap
slots/connections/high conns.high
slots/connections/refused conns.refused
slots/sessions/high sessions.high
slots/sessions/refused sessions.refused
slots/subscriptions/high subscriptions.high
slots/subscriptions/refused subscriptions.refused
slots/nodes/high subscriptions.nodes_high
slots/nodes/refused subscriptions.nodes_refused
slots/retained/high retained.high
slots/retained/refused retained.refused
slots/messages/high messages.count.1
slots/messages/refused messages.refused
slots/deliveries/high deliveries.count.1
slots/deliveries/refused deliveries.refused
slots/received/high sessions.ids_high.0
slots/received/refused sessions.ids_refused
slots/reassembly/high conns.bigs.1
slots/reassembly/refused conns.bigs.2
"""
# Moving averages, per minute: name, and index in stats
LOADS = (("messages/received", 0), ("messages/sent", 1), ("publish/received", 2))
LOADS += (("publish/sent", 3), ("bytes/received", 5), ("bytes/sent", 6))
_MINUTES = (1, 5, 15)


class Sys:
    def __init__(self, broker, interval_s):
        self.broker = broker
        self.interval = interval_s * 10
        self.next_round = 0
        self.rows = TOPICS.count("\n")
        self.count = self.rows + len(LOADS) * len(_MINUTES)
        self.last = array("i", bytes(4 * self.count))  # hashes of the values last sent
        self.before = [0] * len(LOADS)
        self.loads = [0.0] * (len(LOADS) * len(_MINUTES))

    # The topics, by number

    def _row(self, i):
        start = 0
        for _ in range(i):
            start = TOPICS.find("\n", start) + 1
        return TOPICS[start : TOPICS.find("\n", start)]

    def topic(self, i, buf, off):
        """Write the name of topic i to buf[off:]; -> its length in bytes."""
        if i < self.rows:
            row = self._row(i)
            name = row.rsplit(" ", 2 if " .stat " in row else 1)[0]
        else:
            load, minutes = divmod(i - self.rows, len(_MINUTES))
            name = "load/%s/%dmin" % (LOADS[load][0], _MINUTES[minutes])
        text = b"$SYS/broker/" + name.encode()
        buf[off : off + len(text)] = text
        return len(text)

    def value(self, i):
        """The value of topic i as text."""
        if i >= self.rows:
            return "%.2f" % self.loads[i - self.rows]
        words = self._row(i).split(" ")
        if words[-2] == ".stat":
            return str(self.stat(int(words[-1])))
        path = words[-1]
        if path[0] == ".":
            return str(getattr(self, path[1:])())
        found = self.broker
        for part in path.split("."):
            found = found[int(part)] if part.isdigit() else getattr(found, part)
        return str(found)

    def message(self, i):
        """Topic and value in a message slot, whose reference is the caller's; or NONE."""
        buf = bytearray(80)
        n = self.topic(i, buf, 2)
        buf[0] = 0
        buf[1] = n
        value = self.value(i).encode()
        buf[2 + n : 2 + n + len(value)] = value
        return store(self.broker.queue, buf, 2, n, 2 + n, len(value), 0)

    # Values that are not simply there

    def version(self):
        from slotmq import __version__

        return "slotmq version " + __version__

    def uptime(self):
        return "%d seconds" % (self.broker.now // 10)

    def known(self):
        return self.broker.sessions.names.count()

    def connected(self):
        return self.broker.connected

    def offline(self):
        return self.known() - self.connected()

    def retained(self):
        return self.broker.retained.names.count()

    def stored(self):
        arena = self.broker.messages.arena
        return (arena.blocks - arena.free_blocks()) * arena.size

    def heap(self):
        return gc.mem_alloc() if MICROPYTHON else 0

    def stat(self, k):
        """A counter of all time."""
        return self.broker.carried[k] * CARRY + self.broker.stats[k]

    def sent(self):
        return self.stat(1) + self.stat(_PUBLISH_OUT)

    # Time

    def tick(self):
        """Several times a second: a round when it is time."""
        if self.broker.now >= self.next_round:
            self.next_round = self.broker.now + self.interval
            self._measure_loads()
            if self._is_wanted():
                self._publish_changed()

    def _measure_loads(self):
        for k in range(len(LOADS)):
            now = self.stat(LOADS[k][1])
            if LOADS[k][1] == 1:
                now = self.sent()
            rate = (now - self.before[k]) * 600 / self.interval
            self.before[k] = now
            for j in range(len(_MINUTES)):
                weight = min(1.0, self.interval / 600 / _MINUTES[j])
                at = k * len(_MINUTES) + j
                self.loads[at] += weight * (rate - self.loads[at])

    def _is_wanted(self):
        subs = self.broker.subscriptions
        return subs.nodes.find(subs.root, b"$SYS", 0, 4) != _NONE

    def _publish_changed(self):
        from slotmq.lifecycle import publish_stored

        for i in range(self.count):
            mark = hash(self.value(i)) & 0x3FFFFFFF
            if mark != self.last[i]:
                msg = self.message(i)
                if msg != _NONE:
                    self.last[i] = mark
                    publish_stored(self.broker, msg)
                    unref(self.broker.queue, msg)
