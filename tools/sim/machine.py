# machine.py - clock, poller and listener for a Loop, and the trace of a run.
#
# The loop runs with MicroPython's heap locked. The code here allocates, so it lifts the lock.
import binascii

from slotmq.platform import heap

IN, OUT, ERR, HUP = 1, 4, 8, 16
PERIOD = 1 << 30  # of ticks_ms on a 32-bit board


class Clock:
    """Time in ms since the start. The broker gets ticks that wrap around as on a board."""

    def __init__(self, base):
        self.base = base
        self.ms = 0
        self.before_asked = None

    def ticks_ms(self):
        heap.lift()
        if self.before_asked:
            self.before_asked()
        now = (self.base + self.ms) % PERIOD
        heap.drop()
        return now

    def ticks_diff(self, now, before):
        heap.lift()
        found = (now - before + PERIOD // 2) % PERIOD - PERIOD // 2
        heap.drop()
        return found

    def wrapped(self):
        return self.base + self.ms >= PERIOD


class Poller:
    """Returns ready streams, in an order that the seed determines if there are numbers."""

    def __init__(self, numbers):
        self.numbers = numbers
        self.masks = {}
        self.order = []

    def register(self, stream, mask):
        assert stream not in self.masks
        self.masks[stream] = mask
        self.order.append(stream)

    def modify(self, stream, mask):
        assert stream in self.masks
        self.masks[stream] = mask

    def unregister(self, stream):
        del self.masks[stream]
        self.order.remove(stream)

    def ipoll(self, timeout_ms):
        heap.lift()
        found = []
        for stream in self.order:
            event = stream.events(self.masks[stream])
            if event:
                found.append((stream, event))
        if self.numbers and len(found) > 1:
            at = self.numbers.below(len(found))
            found = found[at:] + found[:at]
        heap.drop()
        return found


class Listener:
    """Links that wait to be accepted."""

    def __init__(self, numbers):
        self.waiting = []
        self.numbers = numbers
        self.fails = 0  # percentage of accepts without a free socket

    def accept(self):
        if not self.waiting:
            return None
        if self.fails and self.numbers.percent(self.fails):
            raise OSError(24)
        return self.waiting.pop(0), None

    def events(self, mask):
        return IN & mask if self.waiting else 0

    def close(self):
        pass


class Trace:
    """The hash of a run: of every byte that was read or written, with link and time."""

    def __init__(self):
        self.hash = 0
        self.reads = self.writes = 0

    def note(self, what, link, ms, data):
        """what: one byte, r w or another event; link: its number."""
        head = bytes((what, link >> 8 & 255, link & 255, ms >> 16 & 255, ms >> 8 & 255, ms & 255))
        self.hash = binascii.crc32(head + data, self.hash)

    def shown(self):
        return f"{self.hash:08x}"
