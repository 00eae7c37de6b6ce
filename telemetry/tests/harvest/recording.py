"""A board's ring, whose segments are written independently of the recorder (season/writer.py)."""

import struct
import zlib
from dataclasses import dataclass, field

from slotmq_telemetry.season.writer import NO_ID, header, record

SIZE = 4096
DEF, MESSAGE, EVENT = 1, 2, 3


@dataclass
class Recorder:
    """A board's ring: segments as its flash has them, the oldest goes when they are too many."""

    name: str  # 16 hexadecimal digits
    size: int = SIZE
    keeps: int = 1000
    boot: int = 0
    next: int = 0
    ticks: int = 0
    segments: dict[int, bytes] = field(default_factory=dict)
    newest: int = -1
    topics: dict[str, int] = field(default_factory=dict)

    def start(self) -> None:
        """The board starts: a new boot, a new segment."""
        self.boot, self.next, self.ticks = self.boot + 1, 0, 0
        self._segment()
        self._put(EVENT, 1, NO_ID, NO_ID, b"\x01", [])

    def message(self, topic: str, payload: bytes, qos: int = 0) -> tuple[int, int]:
        """Records one; -> (boot, seq)."""
        self.ticks += 250
        self._put(MESSAGE, qos, NO_ID, 0, payload, [topic])
        return self.boot, self.next - 1

    def tear(self, tail: bytes = b"\x12\x34\x56\x78\x40\x00") -> None:
        """Power fails in the middle of a record."""
        self.segments[self.newest] += tail

    def state(self) -> dict[str, object]:
        return {
            "board": self.name, "boot": self.boot, "first": min(self.segments),
            "segment": self.newest, "length": len(self.segments[self.newest]),
            "next": self.next, "size": self.size,
        }  # fmt: skip

    def _segment(self) -> None:
        self.newest += 1
        self.topics = {}
        start = header(bytes.fromhex(self.name), self.boot, self.newest, self.next, self.size)
        self.segments[self.newest] = start
        while len(self.segments) > self.keeps:
            del self.segments[min(self.segments)]

    def _put(self, kind: int, flags: int, client: int, topic: int, payload: bytes,
             names: list[str]) -> None:  # fmt: skip
        need = 20 + len(payload) + sum(20 + len(name) for name in names)
        if len(self.segments[self.newest]) + need > self.size:
            self._segment()
        for name in names:
            if name not in self.topics:
                self.topics[name] = len(self.topics)
                self._add(DEF, 1, NO_ID, self.topics[name], name.encode())
            topic = self.topics[name]
        self._add(kind, flags, client, topic, payload)

    def _add(self, kind: int, flags: int, client: int, topic: int, payload: bytes) -> None:
        self.segments[self.newest] += record(
            kind, flags, self.next, self.ticks, client, topic, payload
        )
        self.next += 1


def records(segment: bytes) -> list[tuple[int, bytes]]:
    """(seq, payload) of each whole record of a segment."""
    found, at = [], 32
    while at + 20 <= len(segment):
        crc, length = struct.unpack_from("<IH", segment, at)
        if length == NO_ID or zlib.crc32(segment[at + 4 : at + length]) != crc:
            break
        found.append(
            (struct.unpack_from("<I", segment, at + 8)[0], segment[at + 20 : at + length])
        )
        at += length
    return found
