# mapping_cpython.py - a Mapped on CPython. Its poller takes any object with a descriptor, so what
# comes takes the fast path; and the whole packets of a read or a write are changed in one pass.
# The rest is Mapped's: packets that are cut, and what the socket does not take. Owns what heads
# have become, in each direction. Allocates.
from slotmq.bridge.mapping import Mapped

_HEADS = 1000  # that are known at a time


class Changer:
    """Changes the PUBLISH packets of one direction."""

    def __init__(self, mapper):
        self.mapper = mapper
        self.known = {}  # head of a PUBLISH, up to its topic: what it becomes

    def is_idle(self):
        """Is the Mapper between two packets?"""
        mapper = self.mapper
        return not (mapper.have or mapper.end or mapper.left)

    def change(self, data):
        """-> the packets that `data` begins with, changed, and how many of its bytes they are."""
        mapper = self.mapper
        known = self.known
        parts = []
        at = kept = 0  # what is between them stays as it is
        n = len(data)
        most = len(mapper.head)
        while at + 2 <= n:
            first = data[at]
            length = data[at + 1]
            body = at + 2
            if length > 127:
                length, body = _length(data, at + 1, n)
            end = body + length
            if end > n:
                break
            if first & 0xF0 == 0x30 and length > 1:
                rest = body + 2 + (data[body] << 8 | data[body + 1])
                # What is too long or malformed stays, as for the Mapper.
                if rest <= end and rest - at <= most:
                    head = data[at:rest]
                    new = known.get(head) or self._learn(head)
                    if new != head:
                        parts += data[kept:at], new
                        kept = rest
            at = end
        if not kept:
            return data[:at], at
        parts.append(data[kept:at])
        return b"".join(parts), at

    def _learn(self, head):
        # -> a head with its topic changed
        mapper = self.mapper
        mapper.have = len(head)
        mapper.head[: mapper.have] = head
        mapper.make()
        if len(self.known) == _HEADS:
            self.known.clear()
        self.known[head] = new = bytes(mapper.made[: mapper.end])
        mapper.end = mapper.left = 0
        return new


def _length(data, at, n):
    # -> the Remaining Length at data[at], and where it ends; (1, n): it is cut; (0, n): malformed
    length = shift = 0
    while at < n and shift < 28:
        length |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return length, at
    return int(shift < 28), n


class Polled(Mapped):
    """As a Mapped, but polled itself."""

    is_plain = False

    def __init__(self, broker, bridge, socket):
        super().__init__(broker, bridge, socket)
        del self.polled  # the poller must not ask for it
        self.fileno = socket.fileno
        self._in = Changer(self.inwards)
        self._out = Changer(self.outwards)
        self._is_cut = False  # is what `raw` has the beginning of a packet?
        if not bridge.ins:  # nothing that comes is changed
            self.is_plain = True
            self.give_back = socket.give_back

    def send(self, data):
        """Send one packet at once; -> how many of its bytes are taken."""
        return self.write(data, 0, len(data)) or 0

    def go_on(self):
        if not self._is_cut:
            super().go_on()

    def readinto(self, buf, n):
        if self.is_plain:
            return self.pipe.readinto(buf, n)
        raw = self.raw
        have = self.raw_end - self.raw_at
        if not self._is_cut and have or not self._in.is_idle():
            return super().readinto(buf, n)
        raw[:have] = raw[self.raw_at : self.raw_end]
        self.raw_at, self.raw_end = 0, have
        try:
            got = self.pipe.readinto(memoryview(raw)[have:], len(raw) - have)
        except BlockingIOError:
            return None
        if not got:
            self.is_ended = got == 0
            return got
        self.raw_end = have = have + got
        made, used = self._in.change(bytes(memoryview(raw)[:have]))
        self._is_cut = used > 0 or have < len(raw)
        if not self._is_cut or len(made) > n:  # a large packet
            self._is_cut = False
            return super().readinto(buf, n)
        self.raw_at = used
        buf[: len(made)] = made
        return len(made) or None

    def write(self, buf, off, n):
        if self.skip or self.out_at < self.out_end or not self._out.is_idle():
            return super().write(buf, off, n)
        made, used = self._out.change(bytes(memoryview(buf)[off : off + n]))
        if used:
            done = self.pipe.write(made, 0, len(made)) or 0
            if done < len(made):
                rest = made[done:]
                if len(rest) > len(self.out):
                    self.out = bytearray(len(rest))
                self.out[: len(rest)] = rest
                self.out_end = len(rest)
                self.skip = 1
                return used - 1
        return used + (super().write(buf, off + used, n - used) if used < n else 0)
