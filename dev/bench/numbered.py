"""Messages with publisher and number in the payload, and the check of received ones.

All messages of a publisher have the same size, so its bursts are built once and only the numbers
are changed. A `Flow` has the messages from one publisher to one subscriber. It detects lost,
duplicate, altered and reordered messages.
"""

import struct
from collections.abc import Sequence

from slotmq_tools import codec

_NUMBERS = struct.Struct(">HI")  # publisher, message


class Violation(Exception):
    """A message was lost, duplicated, altered or reordered."""


class Series:
    """The messages of one publisher, on its topics in turn.

    `depth` bursts can be in flight without sharing a packet id. With an `alias` the messages have
    it instead of the topic; `first_with_alias` must be sent before. `props`: other properties.
    """

    def __init__(
        self,
        publisher: int,
        topics: Sequence[str],
        *,
        qos: int = 0,
        payload: int = 16,
        burst: int = 1,
        depth: int = 1,
        level: int = 4,
        alias: int = 0,
        props: bytes = b"",
    ) -> None:
        self.publisher = publisher
        self.burst = burst
        self.sent = 0
        slots = burst * max(depth, len(topics) // burst)
        blank = bytes(payload)
        props += b"\x23" + codec.number(alias) if alias else b""
        names = [topic.encode() for topic in topics]
        self.first_with_alias = codec.publish(names[0], blank, properties=codec.of(level, props))
        packets = [
            codec.publish(
                b"" if alias else names[slot % len(names)], blank, qos, slot + 1,
                properties=codec.of(level, props),
            )
            for slot in range(slots)
        ]  # fmt: skip
        self.packet_size = len(packets[0])
        self._templates = [
            bytearray().join(packets[first : first + burst]) for first in range(0, slots, burst)
        ]
        self._first_number = self.packet_size - payload

    def next_burst(self) -> bytes:
        """The next `burst` messages."""
        template = self._templates[self.sent // self.burst % len(self._templates)]
        at, size, publisher, pack = (
            self._first_number,
            self.packet_size,
            self.publisher,
            _NUMBERS.pack_into,
        )
        for number in range(self.sent, self.sent + self.burst):
            pack(template, at, publisher, number)
            at += size
        self.sent += self.burst
        return bytes(template)


class Flow:
    """From one publisher to one subscriber: of each burst the `first` and every `step`-th.

    `exact`: take_bytes() compares the received bytes with those that were sent.
    """

    def __init__(
        self, series: Series, *, first: int = 0, step: int = 1, exact: bool = False
    ) -> None:
        if series.burst % step:
            raise ValueError(f"a burst of {series.burst} cannot be dealt to {step} flows")
        self.settled = 0  # delivered, at QoS 2 also released
        self.due = 0  # published and not settled
        self._series = series
        self._first, self._step = first, step
        self._exact = exact
        self._next = first
        self._bytes = bytearray()
        self._cut = 0  # received bytes of the next message

    def publish(self, burst: bytes) -> None:
        """The publisher's next burst is about to be sent."""
        self.due += self._series.burst // self._step
        if self._exact:
            self._bytes += self._part_of(burst)

    def settle(self, count: int = 1) -> None:
        """So many messages are delivered."""
        self.settled += count
        self.due -= count

    def take_bytes(self, data: bytes) -> None:
        """Compare received QoS 0 messages with those that were published, and settle them."""
        if not self._bytes.startswith(data):
            raise Violation(f"{_difference(self._bytes, data)} (message {self.settled} and on)")
        del self._bytes[: len(data)]
        whole, self._cut = divmod(self._cut + len(data), self._series.packet_size)
        self.settle(whole)

    def take_number(self, number: int) -> None:
        """Check the number of a received message."""
        if number != self._next or not self.due:
            publisher = self._series.publisher
            raise Violation(f"publisher {publisher}: {number} received instead of {self._next}")
        self._next += self._step

    def _part_of(self, burst: bytes) -> bytes:
        if self._step == 1:
            return burst
        size = self._series.packet_size
        starts = range(self._first * size, len(burst), self._step * size)
        return b"".join([burst[start : start + size] for start in starts])


def read_numbers(data: bytes | bytearray, at: int) -> tuple[int, int]:
    """(publisher, message) of the payload at this position."""
    publisher, number = _NUMBERS.unpack_from(data, at)
    return publisher, number


def number_payload(publisher: int, number: int, size: int) -> bytes:
    """A payload of this size with these numbers."""
    return _NUMBERS.pack(publisher, number).ljust(size, b"\0")


def _difference(due: bytes | bytearray, received: bytes) -> str:
    at = next((i for i, (a, b) in enumerate(zip(due, received, strict=False)) if a != b), len(due))
    expected = bytes(due[at : at + 40]).hex() or "nothing"
    return f"{received[at : at + 40].hex()} received instead of {expected}"
