# link.py - a TCP connection. Its broker's end is the stream that the loop reads and writes, the
# other end is the client's. Owns the bytes in transit in both directions, and injects faults.
#
# Bytes of the client are in `sent` until the broker reads them. `ends` has the packets and the
# position of each one's end, so that the world is notified of a packet when its last byte was
# read. parse() splits the broker's bytes into packets; arrived() returns those that the client
# has received completely.
#
# The world has seed, clock, trace, turns, packets_in and packets_out; a link calls its settle(),
# was_read(), was_written() and was_closed().
from slotmq.platform import heap

from ..codec import take
from .machine import ERR, HUP, IN, OUT
from .numbers import Numbers

EAGAIN, ECONNRESET, ENOBUFS, EPIPE = 11, 104, 105, 32
ALL = 1 << 20


class Weather:
    """The faults of a link, chosen by the seed."""

    reads = writes = ALL  # bytes per call at most
    capacity = ALL  # bytes in transit to the client until a write returns None
    not_now = 0  # percentage of calls that do nothing
    no_memory = 0  # percentage of writes that raise ENOBUFS
    one_packet = False  # a read ends where a packet ends


class Link:
    ends_a_read = ()  # kinds of packets after which a read ends

    def __init__(self, world, number, client, level, weather):
        self.world = world
        self.number = number
        self.client = client
        self.level = level
        self.weather = weather
        self.numbers = Numbers(world.seed, 100 + number)
        self.sock = self  # for half_close()
        self.sent = bytearray()
        self.sent_total = self.read_total = 0
        self.ends = []
        self.written = self.taken = 0
        self.unparsed = b""
        self.packets = []  # of the broker: (offset of its end, packet)
        self.parsed = 0
        self.ended = self.reset = self.closed = self.vanished = False
        self.last_activity_ms = self.partial_ms = self.wrote_ms = world.clock.ms
        self.blocked_turn = -9  # of the last incomplete write, or of the write after it
        self.waits = False
        self.opened_ms = world.clock.ms

    # The client's end

    def send(self, data, packet):
        self.sent += data
        self.sent_total += len(data)
        self.ends.append((self.sent_total, packet))
        self.world.packets_in += 1

    def arrived(self, most):
        """The packets that are complete when the client has received so many bytes more."""
        self.taken = min(self.written, self.taken + most)
        count = 0
        while count < len(self.packets) and self.packets[count][0] <= self.taken:
            count += 1
        found = [packet for _, packet in self.packets[:count]]
        self.packets = self.packets[count:]
        return found

    def is_over(self):
        """Has the broker closed it, and has the client received everything?"""
        return self.closed and not self.packets

    def break_off(self):
        """The client resets the connection: bytes in transit are lost."""
        self.reset = True
        self.sent = bytearray()
        self.ends = []

    def die(self):
        """The broker's machine has lost its power."""
        self.break_off()
        self.closed = True

    # The broker's end

    def readinto(self, buf, n=None):
        heap.lift()
        try:
            self.world.settle()
            return self._read(buf, len(buf) if n is None else n)
        finally:
            heap.drop()

    def _read(self, buf, n):
        assert not self.closed and n > 0
        if self.reset:
            self.world.trace.note(88, self.number, self.world.clock.ms, b"")
            raise OSError(ECONNRESET)
        if not self.sent and self.ended:
            self.world.trace.note(69, self.number, self.world.clock.ms, b"")
            return 0
        if not self.sent or self.numbers.percent(self.weather.not_now):
            return self._nothing()
        n = self._how_many(min(n, len(self.sent)))
        data = bytes(self.sent[:n])
        buf[:n] = data
        self.sent = self.sent[n:]
        self.read_total += n
        self.world.trace.note(114, self.number, self.world.clock.ms, data)
        self.world.was_read(self, self._whole())
        return n

    def _nothing(self):
        if self.numbers.one_in(2):
            raise OSError(EAGAIN)
        return

    def _how_many(self, n):
        most = self.weather.reads
        if most < 3 * n:
            n = min(n, self.numbers.between(1, most))
        for end, packet in self.ends:
            if packet[0] in self.ends_a_read or self.weather.one_packet:
                return min(n, end - self.read_total)
            if end - self.read_total >= n:
                break
        return n

    def _whole(self):
        """The packets whose last byte was just read."""
        count = 0
        while count < len(self.ends) and self.ends[count][0] <= self.read_total:
            count += 1
        found = [packet for _, packet in self.ends[:count]]
        self.ends = self.ends[count:]
        self.last_activity_ms = self.world.clock.ms
        if found:
            self.partial_ms = self.last_activity_ms
        return found

    def write(self, buf, off, n):
        heap.lift()
        try:
            return self._write(buf, off, n)
        finally:
            heap.drop()

    def _write(self, buf, off, n):
        assert not self.closed
        if self.reset:
            raise OSError(EPIPE if self.numbers.one_in(2) else ECONNRESET)
        weather = self.weather
        if self.waits:
            self.blocked_turn = self.world.turns
        if self.numbers.percent(weather.no_memory):
            self.blocked_turn = self.world.turns
            self.waits = True
            raise OSError(ENOBUFS)
        done = min(n, weather.capacity - (self.written - self.taken))
        if weather.writes < 3 * n:
            done = min(done, self.numbers.between(1, weather.writes))
        if done <= 0 or self.numbers.percent(weather.not_now):
            self.blocked_turn = self.world.turns
            self.waits = True
            return None
        self.waits = done < n
        if self.waits:
            self.blocked_turn = self.world.turns
        self._carry(bytes(buf[off : off + done]))
        return done

    def _carry(self, data):
        self.written += len(data)
        self.unparsed += data
        self.wrote_ms = self.world.clock.ms
        self.world.trace.note(119, self.number, self.world.clock.ms, data)
        self.world.was_written(self)

    def parse(self):
        """Yield the packets that are complete now, and store each with the offset of its end."""
        while self.unparsed:
            packet = take(self.unparsed, self.level)
            if packet is None:
                return
            self.unparsed = self.unparsed[packet.size :]
            self.parsed += packet.size
            self.packets.append((self.parsed, packet))
            self.world.packets_out += 1
            yield packet

    def shutdown(self, how):
        pass

    def close(self):
        heap.lift()
        assert not self.closed
        self.closed = True
        self.world.trace.note(99, self.number, self.world.clock.ms, b"")
        self.world.was_closed(self)
        heap.drop()

    def events(self, mask):
        if self.reset:
            return mask & (IN | OUT) | ERR | HUP
        found = IN if self.sent or self.ended else 0
        if self.written - self.taken < self.weather.capacity:
            found |= OUT
        return found & mask
