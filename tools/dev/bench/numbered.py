"""Messages with their publisher and number in the payload, and the check of what arrives.

The messages of a publisher are all of one size, so its bursts are built once
and only the numbers are written anew. A `Flow` is what one subscriber gets of
one publisher: it knows what is due, and rejects whatever is lost, doubled,
altered or out of order.
"""

import struct
from collections.abc import Sequence

from ... import codec

_NUMBERS = struct.Struct(">HI")  # publisher, message


class Violation(Exception):
    """A message was lost, doubled, altered or delivered out of order."""


class Series:
    """The messages of one publisher, on its topics in turn.

    `depth` bursts can be under way at once without sharing a packet id. With an
    `alias` they have it in place of the one topic, once `first_with_alias` has gone out.
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
    ) -> None:
        self.publisher = publisher
        self.burst = burst
        self.sent = 0
        slots = burst * max(depth, len(topics) // burst)
        blank = bytes(payload)
        props = b"\x23" + codec.number(alias) if alias else b""
        names = [topic.encode() for topic in topics]
        self.first_with_alias = codec.publish(level, names[0], blank, props=props)
        packets = [
            codec.publish(
                level, b"" if alias else names[slot % len(names)], blank, qos, slot + 1,
                props=props,
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
    """What one subscriber gets of one publisher: of each burst the `first` and every `step`-th.

    `exact`: it is checked by `take_bytes`, so the very bytes sent are kept as due.
    """

    def __init__(
        self, series: Series, *, first: int = 0, step: int = 1, exact: bool = False
    ) -> None:
        if series.burst % step:
            raise ValueError(f"a burst of {series.burst} cannot be dealt to {step} flows")
        self.settled = 0  # delivered, and at QoS 2 released too
        self.due = 0  # published and not settled
        self._series = series
        self._first, self._step = first, step
        self._exact = exact
        self._next = first
        self._bytes = bytearray()
        self._cut = 0  # bytes that have come of the next message

    def publish(self, burst: bytes) -> None:
        """The publisher's next burst is about to be sent."""
        self.due += self._series.burst // self._step
        if self._exact:
            self._bytes += self._share(burst)

    def settle(self, count: int = 1) -> None:
        """So many messages are through."""
        self.settled += count
        self.due -= count

    def take_bytes(self, data: bytes) -> None:
        """Check bytes of QoS 0 messages against those that were published, and settle them."""
        if not self._bytes.startswith(data):
            raise Violation(f"{_difference(self._bytes, data)} (message {self.settled} and on)")
        del self._bytes[: len(data)]
        whole, self._cut = divmod(self._cut + len(data), self._series.packet_size)
        self.settle(whole)

    def take_number(self, number: int) -> None:
        """Check the number of a message that has come."""
        if number != self._next or not self.due:
            publisher = self._series.publisher
            raise Violation(f"publisher {publisher}: {number} came where {self._next} was due")
        self._next += self._step

    def _share(self, burst: bytes) -> bytes:
        if self._step == 1:
            return burst
        size = self._series.packet_size
        starts = range(self._first * size, len(burst), self._step * size)
        return b"".join([burst[start : start + size] for start in starts])


def read_numbers(data: bytes | bytearray, at: int) -> tuple[int, int]:
    """(publisher, message) out of the payload that starts there."""
    publisher, number = _NUMBERS.unpack_from(data, at)
    return publisher, number


def number_payload(publisher: int, number: int, size: int) -> bytes:
    """A payload of that size with these numbers."""
    return _NUMBERS.pack(publisher, number).ljust(size, b"\0")


def _difference(due: bytes | bytearray, came: bytes) -> str:
    at = next((i for i, (a, b) in enumerate(zip(due, came, strict=False)) if a != b), len(due))
    wanted = bytes(due[at : at + 40]).hex() or "nothing"
    return f"{came[at : at + 40].hex()} came where {wanted} was due"
