"""Parses a segment with the standard library alone: header, records, CRCs (lib/FORMAT.md).

A segment is a header of 32 bytes and records without padding, each with a CRC. It ends where the
flash is erased, or where the board lost power. A harvest asks how many records are whole;
telemetry/decode.py makes tables of them.
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
TORN = "torn record"  # as power cuts leave one
GAPS = {1: "overwritten", 2: "ring full", 3: "write failed"}

_HEADER = struct.Struct("<4sBBH8sIIII")
RECORD = struct.Struct("<IHBBIIHH")  # crc, length, type, flags, seq, ticks, client, topic
TIME = struct.Struct("<IHI")  # of an ANCHOR
LOSS = struct.Struct("<IIII")  # of a GAP


class NotASegment(Exception):
    """Why bytes are no segment; its text is the `reason` in the quarantine table."""


class Header(NamedTuple):
    """Who wrote a segment, and where it stands in the ring."""

    board: str  # 16 hex digits
    boot: int
    segment: int
    first: int  # seq of its first record
    size: int  # of each segment of the ring


class Scan(NamedTuple):
    """How much of a segment is whole."""

    header: Header
    end: int  # behind the last whole record
    last: int  # its seq, or first - 1 if there is none
    torn: bool  # is there anything behind, that is no whole record?
    cut: bool  # is that a record whose end is missing?


class Chain(NamedTuple):
    """The records of a segment: where each begins, and where and why they end."""

    offsets: list[int]
    end: int
    reason: str | None  # None: in order, the rest is erased or there is none


def header(data: bytes | memoryview, offset: int = 0) -> Header:
    """The header at `offset`, or NotASegment."""
    if len(data) - offset < HEADER_SIZE:
        raise NotASegment("cut header")
    magic, version, _, size, board, boot, segment, first, crc = _HEADER.unpack_from(data, offset)
    if magic != MAGIC:
        raise NotASegment("not a segment")
    if crc32(data[offset : offset + HEADER_SIZE - 4]) != crc:
        raise NotASegment("bad header CRC")
    if version != VERSION:
        raise NotASegment(f"format version {version}")
    if size * 256 < HEADER_SIZE:
        raise NotASegment("bad segment size")
    return Header(board.hex(), boot, segment, first, size * 256)


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
        return TORN
    if length == ERASED_LENGTH:
        return "bytes behind the end"
    if length < RECORD_SIZE:
        return "bad length"
    return TORN if length > used else "bad CRC"


def scan(data: bytes) -> Scan:
    """Check each record up to the first that is not whole."""
    head, chain = header(data), walk(data)
    at, left = chain.end, len(data) - chain.end
    last = RECORD.unpack_from(data, chain.offsets[-1])[4] if chain.offsets else head.first - 1
    length = int.from_bytes(data[at + 4 : at + 6], "little")
    is_torn = chain.reason is not None
    is_cut = is_torn and (left < RECORD_SIZE or left < length < ERASED_LENGTH)
    return Scan(head, at, last, is_torn, is_cut)


def fitting(data: bytes) -> bytes:
    """What a bundle can hold of it: no more than its header's size, which places what follows."""
    return data[: header(data).size]


def padded(data: bytes, size: int) -> bytes:
    """As it lies in a bundle, at exactly this size: erased flash behind it."""
    return data[:size].ljust(size, b"\xff")
