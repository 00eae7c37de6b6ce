# wire.py - what the fakes of the ports have in common: a clock that stands until it is told,
# the peer of a connection, and MicroPython's heap as C code of a port meets it.
#
# Everything here runs on CPython and on MicroPython, also where the broker's loop has locked the
# heap: a fake lifts the lock for its own work. Whether it was locked is asked before, since what
# a port allocates fails then: Heap.enter() ... alloc(point, locked) ... leave().
from slotmq.platform import heap as lock


class Clock:
    def __init__(self):
        self.ms = 0

    def ticks_ms(self):
        return self.ms

    def ticks_diff(self, now, before):
        return now - before


class Heap:
    """`points` are the names of the places that have allocated. One of them fails as often as
    fail(point, times) says; all of them fail while the heap is locked."""

    def __init__(self):
        self.points = []
        self._failing = None
        self.times = 0  # that are left

    def fail(self, point, times=1):
        self._failing = point
        self.times = times

    def enter(self):
        locked = lock._state[0] and not lock._state[1]
        lock.lift()
        return locked

    def leave(self):
        lock.drop()

    def alloc(self, point, locked):
        if point not in self.points:
            self.points.append(point)
        if point == self._failing and self.times:
            self.times -= 1
            raise MemoryError("no heap: " + point)
        if locked:
            raise MemoryError("heap is locked: " + point)


def read_exactly(read, buf, n):
    """mp_stream_readinto (py/stream.c): reads until there are n bytes, the end or nothing now; an
    error takes along what was read before it. read(n) gives bytes, none at the end, or None."""
    done = 0
    while done < n:
        data = read(n - done)
        if data is None:
            return done or None
        if not data:
            break
        buf[done : done + len(data)] = data
        done += len(data)
    return done


class Peer:
    """The other end of a connection, on another machine.

    It sends with send(), end() (FIN) and reset() (RST). What it was sent is in `received`. It
    acknowledges everything after `rtt_ms`, or `rate` bytes a millisecond at most; after stop(n)
    it acknowledges n bytes more (its machine's receive buffer) and then nothing, until go_on().
    `state` is "open", "ended" (the broker's FIN has come) or "reset"."""

    rtt_ms = 0
    rate = None

    def __init__(self, net):
        self.net = net
        self.received = bytearray()
        self.to_send = bytearray()  # for which the board's window has no room yet
        self.takes = None  # bytes that it will acknowledge; None: all
        self.has_ended = False
        self.state = "open"
        self._last_ms = net.clock.ms
        self._budget = 0

    def send(self, data):
        self.to_send += data
        self.net.carry()

    def end(self):
        self.has_ended = True
        self.net.carry()

    def reset(self):
        self.state = "reset"
        self.net.lose(self, "reset")

    def vanish(self):
        """It answers no more, and the board's stack has given it up."""
        self.net.lose(self, "aborted")

    def stop(self, more=0):
        self.takes = more

    def go_on(self):
        self.takes = None
        self.net.carry()

    def may_take(self, n):
        # -> how many of n bytes it acknowledges now
        now = self.net.clock.ms
        if self.rate is not None:
            self._budget = min(self._budget + self.rate * (now - self._last_ms), 65535)
            n = min(n, self._budget)
        self._last_ms = now
        return n if self.takes is None else min(n, self.takes)

    def take(self, data):
        self.received += data
        if self.rate is not None:
            self._budget -= len(data)
        if self.takes is not None:
            self.takes -= len(data)


class Net:
    """Time and what happens in it; a port's fake inherits it."""

    TICK_MS = 1  # of the port's waits

    def __init__(self):
        self.clock = Clock()
        self.heap = Heap()
        self.printed = []  # lines on the console
        self._later = []  # (ms, callback): soft timers and scheduled callbacks

    def later(self, ms, callback):
        """Call this in so many milliseconds: in a pass_time(), a wait for events, a write that
        waits. As on a board the heap is locked meanwhile if the program has locked it."""
        self._later.append((self.clock.ms + ms, callback))

    def pass_time(self, ms, locked=False):
        end = self.clock.ms + ms
        while self.clock.ms < end:
            self.clock.ms += min(self.TICK_MS, end - self.clock.ms)
            self.carry()
            self._call(locked)

    def _call(self, locked):
        for due in [item for item in self._later if item[0] <= self.clock.ms]:
            self._later.remove(due)
            if locked:
                lock.drop()
            try:
                due[1]()
            finally:
                if locked:
                    lock.lift()

    def carry(self):
        """What is on its way arrives, and is acknowledged."""
        raise NotImplementedError

    def lose(self, peer, how):
        raise NotImplementedError
