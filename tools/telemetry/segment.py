"""Parses a segment file with the standard library alone: header, records, CRCs.

lib/FORMAT.md has the layout. A segment is a header of 32 bytes and records without padding, each
with a CRC. It ends where the flash is erased, or where the board lost power. decode.py makes
tables of segments; this file also serves programs that only verify.
"""

from __future__ import annotations

import struct
from typing import NamedTuple
from zlib import crc32

MAGIC = b"SLMR"
VERSION = 1
HEADER_SIZE = 32
RECORD_SIZE = 20  # before the payload
ORIGIN_SIZE = 16
NO_ID = 0xFFFF
ERASED_LENGTH = 0xFFFF
TICKS_PERIOD = 1 << 30  # ms, then ticks begin anew

DEF, MESSAGE, EVENT, ANCHOR, GAP = range(1, 6)
DEF_CLIENT, DEF_TOPIC = 0, 1
RETAIN, DUP, HAS_ORIGIN = 4, 8, 16  # flags of a MESSAGE, beside the QoS
EVENTS = {
    1: "boot",
    2: "connect",
    3: "disconnect",
    4: "will",
    5: "takeover",
    6: "subscribe",
    7: "table full",
    8: "heap low-water",
    9: "unsubscribe",
    10: "time passes",
}
QUALITIES = {1: "rtc", 2: "message", 3: "harvester", 4: "ntp"}
GAPS = {1: "overwritten", 2: "ring full", 3: "write failed"}

_HEADER = struct.Struct("<4sBBH8sIIII")
RECORD = struct.Struct("<IHBBIIHH")  # crc, length, type, flags, seq, ticks, client, topic
TIME = struct.Struct("<IHI")  # of an ANCHOR
LOSS = struct.Struct("<IIII")  # of a GAP


class BadSegment(Exception):
    """Why bytes are no segment; its text is the `reason` in the quarantine table."""


class Header(NamedTuple):
    """What a segment says of itself."""

    size: int  # of the whole segment
    board: str  # 16 hex digits
    boot: int
    segment: int
    first_seq: int


class Chain(NamedTuple):
    """The records of a segment: where each begins, and where and why they end."""

    offsets: list[int]
    end: int
    reason: str | None  # None: in order, the rest is erased or there is none


def read_header(data: bytes | memoryview, offset: int = 0) -> Header:
    """The header at `offset`, or BadSegment."""
    if len(data) - offset < HEADER_SIZE:
        raise BadSegment("cut header")
    magic, version, _, size, board, boot, segment, first, crc = _HEADER.unpack_from(data, offset)
    if magic != MAGIC:
        raise BadSegment("not a segment")
    if crc32(data[offset : offset + HEADER_SIZE - 4]) != crc:
        raise BadSegment("bad header CRC")
    if version != VERSION:
        raise BadSegment(f"format version {version}")
    if size * 256 < HEADER_SIZE:
        raise BadSegment("bad segment size")
    return Header(size * 256, board.hex(), boot, segment, first)


def walk(data: bytes | memoryview, start: int = HEADER_SIZE, end: int | None = None) -> Chain:
    """The records of the segment whose first record is at `start`, every CRC checked."""
    view = memoryview(data)
    stop = len(view) if end is None else end
    offsets: list[int] = []
    add, head = offsets.append, struct.Struct("<IH").unpack_from
    at, last = start, stop - RECORD_SIZE
    while at <= last:
        crc, length = head(view, at)
        after = at + length
        if not RECORD_SIZE <= length < ERASED_LENGTH or after > stop:
            break
        if crc32(view[at + 4 : after]) != crc:
            break
        add(at)
        at = after
    return Chain(offsets, at, _end(view, at, stop))


def _end(view: memoryview, at: int, stop: int) -> str | None:
    """What is wrong with how the records end."""
    used = len(bytes(view[at:stop]).rstrip(b"\xff"))
    length = int.from_bytes(view[at + 4 : at + 6], "little")
    if used == 0:
        return None
    if used < RECORD_SIZE and (used < 6 or length > used):
        return "torn record"
    if length == ERASED_LENGTH:
        return "bytes behind the end"
    if length < RECORD_SIZE:
        return "bad length"
    return "torn record" if length > used else "bad CRC"
