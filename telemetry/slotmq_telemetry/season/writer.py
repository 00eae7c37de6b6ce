"""Writes segments as the format says, independently of the board's code and of the decoder, so
that a mistake in either is found.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field

NO_ID = 0xFFFF
HEADER = 32
RECORD = 20  # bytes in front of a payload


def le(value: int, size: int) -> bytes:
    """An unsigned integer, the least byte first."""
    return value.to_bytes(size, "little")


def header(board: bytes, boot: int, number: int, first_seq: int, size: int) -> bytes:
    """The 32 bytes in front of a segment's records."""
    body = b"SLMR\x01\x00" + le(size // 256, 2) + board.ljust(8, b"\0")
    body += le(boot, 4) + le(number, 4) + le(first_seq, 4)
    return body + le(zlib.crc32(body), 4)


def record(
    kind: int, flags: int, seq: int, uptime: int, client: int, topic: int, payload: bytes
) -> bytes:
    """One record; its ticks are the uptime modulo 2**30."""
    body = le(20 + len(payload), 2) + bytes((kind, flags)) + le(seq, 4)
    body += le(uptime % 2**30, 4) + le(client, 2) + le(topic, 2) + payload
    return le(zlib.crc32(body), 4) + body


@dataclass(frozen=True)
class Entry:
    """A record as it was meant, and when it truly happened."""

    board: str
    boot: int
    segment: int
    seq: int
    uptime: int  # ms, and no wrap
    kind: int
    flags: int
    client: str | None
    topic: str | None
    payload: bytes
    crc: int

    def end(self, offset: int) -> int:
        """Behind it, if it begins at this offset."""
        return offset + RECORD + len(self.payload)


@dataclass
class Segment:
    """A segment on a board's flash, with what was written into it."""

    number: int
    boot: int
    first_seq: int
    data: bytearray
    entries: list[tuple[int, Entry]] = field(default_factory=list)  # with their offsets
    torn: int = 0  # bytes of a record that the power went away under
    ids: dict[tuple[int, str], int] = field(default_factory=dict)
    defined: int = 0

    def define(self, kind: int, text: str) -> int:
        """An id for a client (0) or a topic (1). There are few: old ones are defined anew."""
        number = self.defined % 5 * 3
        self.defined += 1
        for other in [key for key, value in self.ids.items() if value == number]:
            if other[0] == kind:
                del self.ids[other]
        self.ids[kind, text] = number
        return number
