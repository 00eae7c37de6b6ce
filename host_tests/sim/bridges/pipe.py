# pipe.py - one end of the connection between two brokers: the stream that this broker's loop reads
# and writes. What it writes is on the road for a while, then the other end may read it.
from slotmq_tools import codec
from slotmq_tools.sim.link import Link

from ..messages import number_of
from ..model.model import PromiseBroken
from .plan import HERE

_LINGERING = 5  # a state of connections
_STATES = b"0", b"1"  # what a bridge says of itself


class Pipe(Link):
    def __init__(self, end, number, weather, table, other_table):
        super().__init__(end, number, None, 4, weather)
        self.table = table  # of what this broker sends
        self.other_table = other_table
        self.other = None  # the Pipe at the other end
        self.road = []  # [due in ms, bytes]
        self.out, self.into = codec.Reader(), codec.Reader()

    # The broker's side

    def _carry(self, data):
        self.written += len(data)
        self.world.trace.note(119, self.number, self.world.clock.ms, data)
        self.road.append([self.world.clock.ms + self.world.plan_of_all.delay_ms, data])
        for first, body in self.out.packets(data):
            self.world.packets_out += 1
            if first >> 4 == codec.CONNECT:
                self.level = self.other.level = body[2 + codec.two(body, 0)] & 127
            # Of this connection: the bridge may have dialled again with another version
            self.table.level = self.level
            packet = codec.decode(first, body, self.level, self.number & 1 == HERE)
            is_known = packet.payload in _STATES or number_of(packet.payload) >= 0
            if packet.kind == codec.PUBLISH and not is_known:
                raise PromiseBroken(f"{self.table.name} sent {packet.payload[:40]}")
            self.table.sent(first, body, self.number >> 1)

    def _read(self, buf, n):
        n = super()._read(buf, n)
        if self._lingers():
            return n  # and its broker discards that
        for first, body in self.into.packets(bytes(buf[: n or 0])):
            self.world.packets_in += 1
            self.table.acknowledged(first, body)
            self.other_table.level = self.level
            self.other_table.arrived(first, body)
        return n

    def _lingers(self):
        conns = self.world.broker.conns
        for conn in range(conns.slots):
            stream = conns.stream[conn]
            if stream is self or getattr(stream, "socket", None) is self:
                return conns.state[conn] == _LINGERING
        return False

    # The network's side

    def go_on(self, most):
        """Carry at most so many bytes to the other end."""
        other = self.other
        while self.road and most > 0 and self.road[0][0] <= self.world.clock.ms:
            if len(other.sent) >= self.weather.capacity:
                return
            data = self.road[0][1]
            part, rest = data[:most], data[most:]
            most -= len(part)
            self.taken += len(part)
            self.road[0][1] = rest
            if not rest:
                self.road.pop(0)
            if other.closed or other.vanished:
                if other.closed:
                    self.break_off()  # RST
                return
            other.sent += part
        if self.closed and not self.road:
            other.ended = True

    def break_off(self):
        super().break_off()
        self.road = []
