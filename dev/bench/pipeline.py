"""Publishers and subscribers that keep a broker busy: they send bursts while earlier ones return.

A publisher sends a burst when all subscribers and acknowledgements are less than `depth` bursts
behind. So the broker always has packets to read, and its queues never overflow.
"""

import select
import time
from collections.abc import Callable, Sequence

from slotmq_tools import codec

from .client import TIMEOUT_S, Client, Silent, Unexpected
from .meter import Sleeper
from .numbered import Flow, Series, Violation, read_numbers

_ID_SIZE = 2
_AFTERWARDS_S = 0.01


class Publisher:
    """Sends bursts of a series, and checks that each message is acknowledged once, in order."""

    def __init__(
        self, client: Client, series: Series, flows: Sequence[Flow], *, qos: int, depth: int
    ) -> None:
        self.client = client
        self._series = series
        self._flows = flows
        self._qos = qos
        self._behind = (depth - 1) * series.burst  # messages at most, when a burst is sent
        self._slots = depth * series.burst
        self._answered = 0  # PUBACK or PUBREC
        self._completed = 0  # PUBACK or PUBCOMP
        self._reader = codec.Reader()

    def fill(self) -> None:
        """Send as many bursts as allowed."""
        while self._unacknowledged <= self._behind and all(
            flow.due <= self._behind for flow in self._flows
        ):
            burst = self._series.next_burst()
            for flow in self._flows:
                flow.publish(burst)
            self.client.send(burst)

    def settled(self) -> bool:
        """Whether everything was acknowledged."""
        return self._unacknowledged == 0

    def on_readable(self) -> None:
        """Read acknowledgements, and answer PUBREC with PUBREL."""
        released = bytearray()
        for first, body in self._reader.packets(self.client.receive()):
            packet_id = int.from_bytes(body, "big")
            if self._acknowledged(first, packet_id):
                released += codec.ack(codec.PUBREL, packet_id)
        if released:
            self.client.send(released)

    @property
    def _unacknowledged(self) -> int:
        return self._series.sent - self._completed if self._qos else 0

    def _acknowledged(self, first: int, packet_id: int) -> bool:
        """Count an acknowledgement; -> whether it needs an answer."""
        kind = first >> 4
        if kind == (codec.PUBACK if self._qos == 1 else codec.PUBREC):
            number = self._answered
            self._answered += 1
            self._completed += self._qos == 1
        elif kind == codec.PUBCOMP and self._completed < self._answered:
            number = self._completed
            self._completed += 1
        else:
            raise Unexpected(f"a publisher received a packet that starts with {first:#04x}")
        if number >= self._series.sent or packet_id != number % self._slots + 1:
            raise Violation(f"packet id {packet_id} acknowledged out of order, or twice")
        return kind == codec.PUBREC


class ByteSubscriber:
    """A subscriber of one publisher at QoS 0, which knows the expected bytes."""

    def __init__(self, client: Client, flow: Flow) -> None:
        self.client = client
        self._flow = flow

    def on_readable(self) -> None:
        """Check received bytes."""
        self._flow.take_bytes(self.client.receive())


class Subscriber:
    """A subscriber that parses packets: at QoS 1 and 2, or of several publishers."""

    def __init__(self, client: Client, flows: dict[int, Flow], qos: int, level: int = 4) -> None:
        self.client = client
        self._flows = flows
        self._qos = qos
        self._level = level
        self._first = codec.PUBLISH << 4 | qos << 1
        self._only_flow = next(iter(flows.values()))
        self._unreleased: set[int] = set()
        self._reader = codec.Reader()

    def on_readable(self) -> None:
        """Check and acknowledge received messages."""
        answer = bytearray()
        for first, body in self._reader.packets(self.client.receive()):
            if first == self._first:
                answer += self._delivered(body)
            else:
                answer += self._released(first, int.from_bytes(body, "big"))
        if answer:
            self.client.send(answer)

    def _delivered(self, body: bytes) -> bytes:
        after_topic = 2 + (body[0] << 8 | body[1])
        payload = after_id = after_topic + (_ID_SIZE if self._qos else 0)
        if self._level == 5:
            payload += 1 + body[payload]  # of properties, which are fewer than 128 bytes
        publisher, number = read_numbers(body, payload)
        flow = self._flows[publisher]
        flow.take_number(number)
        if self._qos < 2:
            flow.settle()
        if self._qos == 0:
            return b""
        packet_id = int.from_bytes(body[after_topic:after_id], "big")
        if self._qos == 1:
            return codec.ack(codec.PUBACK, packet_id)
        if packet_id in self._unreleased:
            raise Violation(f"packet id {packet_id} used again before its PUBREL")
        self._unreleased.add(packet_id)
        return codec.ack(codec.PUBREC, packet_id)

    def _released(self, first: int, packet_id: int) -> bytes:
        if first >> 4 != codec.PUBREL or packet_id not in self._unreleased:
            raise Unexpected(f"a subscriber received {first:#04x} with id {packet_id}")
        self._unreleased.remove(packet_id)
        self._only_flow.settle()
        return codec.ack(codec.PUBCOMP, packet_id)


class Pipeline:
    """Publishers and subscribers in one loop."""

    def __init__(
        self,
        publishers: Sequence[Publisher],
        subscribers: Sequence[ByteSubscriber | Subscriber],
        flows: Sequence[Flow],
    ) -> None:
        self._publishers = publishers
        self._flows = flows
        self._clients = [peer.client for peer in (*publishers, *subscribers)]
        self._epoll = select.epoll()
        self._on_readable: dict[int, Callable[[], None]] = {}
        for peer in (*publishers, *subscribers):
            descriptor = peer.client.socket.fileno()
            self._epoll.register(descriptor, select.EPOLLIN)
            self._on_readable[descriptor] = peer.on_readable

    def run(self, seconds: float) -> int:
        """Publish for so long, and until everything is delivered; -> the number of deliveries."""
        before = self._deliveries()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._fill()
            self._turn()
        self._drain()
        return self._deliveries() - before

    def run_bursts(self, bursts: int) -> int:
        """Repeat time_burst(); -> the number of deliveries."""
        before = self._deliveries()
        for _ in range(bursts):
            self.time_burst()
        return self._deliveries() - before

    def run_in_step(self, bursts: int, broker: Sleeper) -> int:
        """As run_bursts(), but all clients send at once, while the broker is stopped.

        So what the broker reads in a turn does not depend on the speed of the clients.
        """
        before = self._deliveries()
        for client in self._clients:
            client.hold()
        for _ in range(bursts):
            self._fill()
            while not self._settled():
                self._step(broker)
        self._step(broker)
        return self._deliveries() - before

    def _step(self, broker: Sleeper) -> None:
        with broker.stopped():
            sent = [client.release() for client in self._clients]
        if not any(sent) and not self._settled():  # the broker slept during its work
            self._turn()
        broker.wait_until_asleep()
        while ready := self._epoll.poll(0):
            for descriptor, _ in ready:
                self._on_readable[descriptor]()

    def time_burst(self) -> int:
        """Let each publisher send `depth` bursts; -> the time until they are settled, in ns."""
        start = time.perf_counter_ns()
        self._fill()
        while not self._settled():
            self._turn()
        return time.perf_counter_ns() - start

    def close(self) -> None:
        """Close all connections."""
        self._epoll.close()
        for client in self._clients:
            client.close()

    def _fill(self) -> None:
        for publisher in self._publishers:
            publisher.fill()

    def _drain(self) -> None:
        """Read until everything is settled, and a little longer, to detect surplus packets."""
        while not self._settled():
            self._turn()
        for descriptor, _ in self._epoll.poll(_AFTERWARDS_S):
            self._on_readable[descriptor]()

    def _turn(self) -> None:
        ready = self._epoll.poll(TIMEOUT_S)
        if not ready:
            raise Silent(f"{sum(flow.due for flow in self._flows)} messages were not received")
        for descriptor, _ in ready:
            self._on_readable[descriptor]()

    def _settled(self) -> bool:
        return not any(flow.due for flow in self._flows) and all(
            publisher.settled() for publisher in self._publishers
        )

    def _deliveries(self) -> int:
        return sum(flow.settled for flow in self._flows)
