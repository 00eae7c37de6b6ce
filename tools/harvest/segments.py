"""The bytes of a segment: its header, and how many of its records are intact (lib/FORMAT.md)."""

import struct
import zlib
from dataclasses import dataclass

MAGIC, VERSION = b"SLMR", 1
HEADER = struct.Struct("<4sBBH8sIIII")
_RECORD = struct.Struct("<IHBBI")  # crc, length, type, flags, seq
RECORD_LEN = 20
_ERASED = 0xFFFF
_UNIT = 256  # bytes, of which a header counts the size of a segment


class NotASegment(Exception):
    """What is wrong with the bytes that ought to begin a segment."""


@dataclass(frozen=True)
class Header:
    """Who wrote a segment, and where it stands in the ring."""

    board: str  # 16 hexadecimal digits
    boot: int
    segment: int
    first: int  # seq of its first record
    size: int  # of each segment of the ring


@dataclass(frozen=True)
class Scan:
    """How much of a segment is whole."""

    header: Header
    end: int  # behind the last whole record
    last: int  # its seq, or first - 1 if there is none
    torn: bool  # is there anything behind, that is no whole record?
    cut: bool  # is that a record whose end is missing?


def header(data: bytes) -> Header:
    """The header, checked; NotASegment says why not."""
    if len(data) < HEADER.size:
        raise NotASegment(f"{len(data)} bytes are too few for a segment")
    magic, version, _, units, board, boot, segment, first, crc = HEADER.unpack_from(data)
    if magic != MAGIC:
        raise NotASegment("this is not a segment of a recorder")
    if version > VERSION:
        raise NotASegment(
            f"format {version} is newer than format {VERSION}, which this slotmq reads"
        )
    if zlib.crc32(data[: HEADER.size - 4]) != crc:
        raise NotASegment("the header's CRC is wrong")
    if not units:
        raise NotASegment("its header says that its size is 0")
    return Header(board.hex(), boot, segment, first, units * _UNIT)


def scan(data: bytes) -> Scan:
    """Walk the records and check each CRC, up to the first that is not whole."""
    head = header(data)
    view, at, end, last = memoryview(data), HEADER.size, len(data), head.first - 1
    cut = False
    while at + RECORD_LEN <= end:
        crc, length, _, _, seq = _RECORD.unpack_from(data, at)
        if not RECORD_LEN <= length <= end - at:
            cut = end - at < length < _ERASED
            break
        if zlib.crc32(view[at + 4 : at + length]) != crc:
            break
        last = seq
        at += length
    torn = bool(data[at:].strip(b"\xff"))
    return Scan(head, at, last, torn, torn and (cut or end - at < RECORD_LEN))


def fitting(data: bytes) -> bytes:
    """What a bundle can hold of it: no more than its header's size, which places what follows."""
    return data[: header(data).size]


def beyond(data: bytes) -> str | None:
    """What of it a bundle cannot hold, in words: a faulty recorder wrote more than its size."""
    kept = fitting(data)
    if len(kept) == len(data):
        return None
    lost = scan(data).last - scan(kept).last
    told = f"{lost} records" if lost else f"{len(data) - len(kept)} bytes"
    what = "record is" if lost == 1 else f"{told} are"
    return (
        f"it has {len(data)} bytes, but its header says {len(kept)}: its last {what} not in the"
        " bundle"
    )


def padded(data: bytes, size: int) -> bytes:
    """As it lies in a bundle, at exactly this size: erased flash behind it."""
    return data[:size].ljust(size, b"\xff")
