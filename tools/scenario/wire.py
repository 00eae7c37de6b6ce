"""A TCP connection over a link. Bytes are delayed in both directions, and lost in an outage. The
broker's end is the stream that the loop reads and writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..sim.link import Link, Weather
from . import model

if TYPE_CHECKING:
    from .device import Device
    from .network import Network

_HEAD = 40  # bytes of TCP and IP headers
UP, DOWN = 0, 1


class Wire(Link):
    """One connection of one client."""

    def __init__(self, network: Network, number: int, device: Device, link: model.Link) -> None:
        weather = Weather()
        weather.capacity = link.buffer
        super().__init__(network, number, device, device.group.level, weather)
        self.network = network
        self.device = device
        self.link = link
        self.is_cut = False  # an outage: neither side is notified
        self._free = [float(network.clock.ms)] * 2  # when each direction has sent everything
        self._last = [0, 0]  # when the last bytes of each arrive
        self._wait(UP, 2 * link.latency)  # TCP's handshake

    def _wait(self, way: int, ms: int) -> None:
        self._free[way] += ms

    def _arrival(self, way: int, n: int) -> int:
        """When n bytes that are sent now arrive."""
        link, numbers = self.link, self.numbers
        free, now = self._free[way], self.network.clock.ms
        if free < now:
            free = now
        if link.bandwidth:
            free += (n + _HEAD) * 1000 / link.bandwidth
        self._free[way] = free
        at = free + link.latency
        if link.jitter:
            at += numbers.below(link.jitter + 1)
        if link.loss and numbers.below(10000) < link.loss * 100:
            at += link.retransmission
        last = round(at)
        if last < self._last[way]:
            return self._last[way]
        self._last[way] = last
        return last

    # The client's end

    def post(self, data: bytes, *packet: Any) -> None:
        """Send a packet; its description is passed to Network.was_read()."""
        self.network.at(self._arrival(UP, len(data)), self._arrived, (data, packet))

    def hang_up(self) -> None:
        """The client closes the connection after everything that it has sent."""
        self.network.at(self._arrival(UP, 0), self._ended, None)

    def cut(self) -> None:
        """An outage begins: neither side is notified."""
        self.is_cut = True

    def reset_if_waiting(self) -> None:
        """The outage is over: a retransmission by the broker is answered with a reset."""
        if not self.closed and self.written > self.taken:
            self.break_off()
            self.network.poller.wake(self)

    def _arrived(self, what: tuple[bytes, tuple[Any, ...]]) -> None:
        if not (self.is_cut or self.closed):
            self.send(*what)
            self.network.poller.wake(self)

    def _ended(self, _: None) -> None:
        if not (self.is_cut or self.closed):
            self.ended = True
            self.network.poller.wake(self)

    # The broker's end; unlike in Link, no heap lock is lifted, since CPython has none

    def readinto(self, buf: Any, n: int | None = None) -> Any:
        self.network.settle()
        return self._read(buf, len(buf) if n is None else n)

    def write(self, buf: Any, off: int, n: int) -> Any:
        return self._write(buf, off, n)

    def _carry(self, data: bytes) -> None:
        super()._carry(data)
        self.network.at(self._arrival(DOWN, len(data)), self._went, len(data))

    def _went(self, n: int) -> None:
        if self.is_cut:
            return
        for _ in self.parse():
            pass
        packets = self.arrived(n)
        self.network.poller.wake(self)  # it can be written again
        for packet in packets:
            self.device.handle(self, packet)

    def close(self) -> None:
        """The broker closes the connection."""
        super().close()
        if not self.is_cut:
            self.network.at(self._arrival(DOWN, 0), self.device.was_closed, self)
