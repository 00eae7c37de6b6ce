"""The decoder: segments to Arrow batches, without Spark. One row for each record or bad frame.

It works on whole columns; only the walk from record to record, with the CRCs, is a loop. `decode`
takes consecutive segments of up to some MiB; larger pieces are slower.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from .folder import Folder
from .harvest import segments as s
from .harvest.manifest import Line, Segment
from .manifest import Part
from .schemas import ONLY_BAD, QUARANTINE

SCHEMA = QUARANTINE.schema
CHUNK = 1 << 20  # larger pieces are decoded more slowly
UNREAD = "not read yet"
_ZEROS = bytes(s.HEADER_SIZE)
SHOWN = 64  # bytes of a bad frame that quarantine keeps

_RECORD = np.dtype(
    [
        ("crc", "<u4"), ("length", "<u2"), ("type", "u1"), ("flags", "u1"),
        ("seq", "<u4"), ("ticks", "<u4"), ("client", "<u2"), ("topic", "<u2"),
    ]
)  # fmt: skip
Row = dict[str, Any]
_EXACT = {s.ANCHOR: s.TIME.size, s.GAP: s.LOSS.size}


class Place(NamedTuple):
    """Where bytes come from."""

    file: str
    line: int
    offset: int
    harvested_ms: int | None
    segment_size: int = 1
    segments: Mapping[int, Segment] = {}  # by their places in the bundle


class _Bad(NamedTuple):
    """A frame that is no row: where, why, how large, and whose, if that is known."""

    offset: int
    reason: str
    bytes: int
    header: s.Header | None = None
    first_seq: int | None = None
    record: tuple[int, ...] | None = None  # as segment.RECORD has it; its CRC is right


class _Found(NamedTuple):
    """What the walk has found in a piece of bytes."""

    headers: list[s.Header]
    counts: list[int]  # records of each header
    offsets: list[int]
    bad: list[_Bad]


def decode(
    data: bytes, segment_size: int, place: Place, *, sealed: bool = True
) -> Iterator[pa.RecordBatch]:
    """Rows of SCHEMA for the segments that lie in `data` at multiples of `segment_size`.

    `sealed` says that they must be of that size by their headers too.
    """
    found = _walk(data, segment_size, sealed=sealed)
    bad = found.bad
    if found.offsets:
        yield _rows(data, found, place, bad)
    if bad:
        yield _bad_rows(data, bad, place)


def _walk(data: bytes, segment_size: int, *, sealed: bool) -> _Found:
    view = memoryview(data)
    found = _Found([], [], [], [])
    for start in range(0, len(data), segment_size):
        end = min(start + segment_size, len(data))
        try:
            header = s.header(view, start)
        except s.NotASegment as error:
            found.bad.append(_Bad(start, str(error), end - start))
            continue
        if sealed and header.size != segment_size:
            why = f"segment size {header.size}"
            found.bad.append(_Bad(start, why, end - start, header, header.first))
            continue
        chain = s.walk(view, start + s.HEADER_SIZE, end)
        found.headers.append(header)
        found.counts.append(len(chain.offsets))
        found.offsets.extend(chain.offsets)
        if chain.reason:
            last = s.RECORD.unpack_from(view, chain.offsets[-1])[4] if chain.offsets else None
            first = header.first if last is None else last + 1
            used = len(bytes(view[chain.end : end]).rstrip(b"\xff"))
            found.bad.append(_Bad(chain.end, chain.reason, used, header, first))
    return found


def _rows(data: bytes, found: _Found, place: Place, bad: list[_Bad]) -> pa.RecordBatch:
    offsets = np.array(found.offsets, np.int64)
    at_any = np.ndarray((len(data) - s.RECORD_SIZE + 1,), _RECORD, data, strides=(1,))
    records = at_any[offsets]
    ends = offsets + records["length"]
    payloads = _slices(data, offsets + s.RECORD_SIZE, ends)
    whose = np.repeat(np.arange(len(found.headers)), found.counts)
    client = _Names(records, whose, payloads, s.DEF_CLIENT)
    topic = _Names(records, whose, payloads, s.DEF_TOPIC)
    wrong = _wrong(records, client, topic)
    if wrong:
        bad.extend(
            _Bad(offsets[i], why, ends[i] - offsets[i], found.headers[whose[i]],
                 record=tuple(records[i].tolist()))
            for i, why in sorted(wrong.items())
        )  # fmt: skip
    good = np.ones(len(offsets), bool)
    good[list(wrong)] = False
    batch = pa.RecordBatch.from_arrays(
        [
            *_header_columns(found.headers, whose),
            *(pa.array(records[name].astype(np.int64)) for name in ("seq", "ticks")),
            *(pa.array(records[name].astype(np.int32)) for name in ("type", "flags")),
            client.texts(),
            topic.texts(),
            payloads,
            pa.array(records["crc"].astype(np.int64)),
            _same(place.line, len(offsets)),
            pa.array(offsets + place.offset),
            _same(place.harvested_ms, len(offsets)),
            *(pa.nulls(len(offsets), kind) for kind in SCHEMA.types[-len(ONLY_BAD.split()) :]),
        ],
        schema=SCHEMA,
    )
    return batch.filter(pa.array(good)) if wrong else batch


def _slices(data: bytes, starts: Any, ends: Any) -> pa.Array:
    """The bytes from each start to its end. They rise, so that what is between them may be
    left out of an array over the whole `data`."""
    bounds = np.empty(2 * len(starts), np.int32)
    bounds[0::2], bounds[1::2] = starts, ends
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(data)]
    both = pa.Array.from_buffers(pa.binary(), len(bounds) - 1, buffers)
    return both.take(pa.array(np.arange(0, len(bounds), 2)))


class _Names:
    """What the ids of one kind mean: the text of the last definition before each record."""

    def __init__(self, records: Any, whose: Any, payloads: pa.Array, kind: int) -> None:
        ids = records["topic" if kind == s.DEF_TOPIC else "client"].astype(np.int64)
        self._defs = np.flatnonzero((records["type"] == s.DEF) & (records["flags"] == kind))
        self._payloads, self.broken = payloads, set[int]()
        keys = ((whose << 16 | ids) << 32) | np.arange(len(ids))
        by_id = np.argsort(keys[self._defs])
        known = keys[self._defs][by_id]
        if len(known):
            before = np.searchsorted(known, keys, "right") - 1
            self._has = (before >= 0) & (known[before] >> 32 == keys >> 32)
            self._which = by_id[before]
        else:
            self._has, self._which = np.zeros(len(ids), bool), np.zeros(len(ids), np.int64)
        self._has &= records["type"] != s.DEF
        self._words = [self._text(i) for i in self._defs.tolist()]
        if self.broken:
            broken = np.array([word is None for word in self._words])
            self._has &= ~broken[self._which]
        self.missing = ~self._has & (ids != s.NO_ID)

    def _text(self, record: int) -> str | None:
        try:
            text: str = self._payloads[record].as_py().decode()
            return text
        except UnicodeDecodeError:
            self.broken.add(record)
            return None

    def texts(self) -> pa.Array:
        """The text for each record, or null."""
        if not self._words:
            return pa.nulls(len(self._has), pa.string())
        return pa.array(self._words, pa.string()).take(pa.array(self._which, mask=~self._has))


def _wrong(records: Any, client: _Names, topic: _Names) -> dict[int, str]:
    """The records that cannot be used although their CRC is right, and why."""
    kind, flags = records["type"], records["flags"]
    message = kind == s.MESSAGE
    body = records["length"] - np.uint16(s.RECORD_SIZE)
    reasons = [
        ("unknown type", (kind < s.DEF) | (kind > s.GAP)),
        ("bad definition", (kind == s.DEF) & (flags > s.DEF_TOPIC)),
        ("QoS 3", message & (flags & 3 == 3)),
        ("cut origin", message & (flags & s.HAS_ORIGIN != 0) & (body < s.ORIGIN_SIZE)),
        ("no topic", message & (records["topic"] == s.NO_ID)),
        ("undefined topic", message & topic.missing),
        ("undefined client", (message | (kind == s.EVENT)) & client.missing),
        *(("bad length of payload", (kind == k) & (body != size)) for k, size in _EXACT.items()),
    ]
    found: dict[int, str] = dict.fromkeys(client.broken | topic.broken, "not UTF-8")
    for why, where in reasons:
        for i in np.flatnonzero(where).tolist():
            found.setdefault(i, why)
    return found


def _header_columns(headers: list[s.Header], whose: Any) -> list[pa.Array]:
    index = pa.array(whose)
    return [
        pa.array([header.board for header in headers], pa.string()).take(index),
        pa.array([header.boot for header in headers], pa.int64()).take(index),
        pa.array([header.segment for header in headers], pa.int64()).take(index),
    ]


def _same(value: int | None, count: int) -> pa.Array:
    return pa.nulls(count, pa.int64()) if value is None else pa.array(np.full(count, value))


def _bad_rows(data: bytes, bad: Iterable[_Bad], place: Place) -> pa.RecordBatch:
    names = ("crc", "length", "type", "flags", "seq", "ticks")
    rows = []
    for one in bad:
        row = _bad_row(place, int(one.offset), one.reason, int(one.bytes))
        row["payload"] = data[one.offset : one.offset + SHOWN]
        if one.header:
            row |= {"board": one.header.board, "boot": one.header.boot}
            row |= {"segment": one.header.segment, "first_seq": one.first_seq}
        if one.record:
            row |= dict(zip(names, one.record, strict=False))
            row |= {"first_seq": row["seq"], "last_seq": row["seq"]}
        if row.get("last_seq") is not None and row["last_seq"] < row["first_seq"]:
            row["last_seq"] = None  # the harvest could not read more either
        rows.append(row)
    return _bad_batch(rows)


def _bad_row(place: Place, offset: int, reason: str, size: int) -> Row:
    """A row of quarantine; what its segment was is known from the harvest."""
    row: Row = {"line": place.line, "offset": place.offset + offset, "file": place.file}
    row |= {"harvested_ms": place.harvested_ms, "reason": reason, "bytes": size}
    if one := place.segments.get((place.offset + offset) // place.segment_size):
        row |= {"board": one.board, "boot": one.boot, "segment": one.number}
        row |= {"first_seq": one.first, "last_seq": one.last}
    return row


def _bad_batch(rows: list[Row]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, SCHEMA)


def frames_of(folder: Folder | Path, part: Part) -> Iterator[Any]:
    """Arrow batches of one part. OSError: it cannot be read now, or is not whole, as while it is
    copied: then it has zeros, and another SHA-256."""
    size, first = part.segment_size, part.start // part.segment_size
    segments = {first + i: segment for i, segment in enumerate(part.segments)}
    place = Place(part.path, part.line, part.start, part.harvested_ms, size, segments)
    step, is_whole = max(1, CHUNK // size) * size, False
    with Folder(folder).open(part.path) as file:
        file.seek(part.start)
        for start in range(part.start, part.end, step):
            data = file.read(min(step, part.end - start))
            place = place._replace(offset=start)
            if len(data) < min(step, part.end - start):
                raise OSError(
                    f"it ends at byte {start + len(data):,}: it was not copied as a whole"
                )
            if not is_whole and any(_lacks(data, at, size) for at in range(0, len(data), size)):
                with Folder(folder).open(part.path) as all_:
                    is_whole = hashlib.file_digest(all_, "sha256").hexdigest() == part.sha256
                if not is_whole:
                    raise OSError("zeros where a segment was: it was not copied as a whole")
            yield from decode(data, size, place)


def _lacks(data: bytes, start: int, size: int) -> bool:
    """Whether there are zeros for a segment or its end, which a board hardly leaves."""
    end = min(start + size, len(data))
    return data.startswith(_ZEROS, start) or (
        data[end - 1] == 0 and s.walk(data, start + s.HEADER_SIZE, end).reason is not None
    )


def unread_rows(line: Line, reason: str) -> pa.RecordBatch:
    """A row for each segment of a bundle that cannot be read now."""
    size, ms = line.segment_size, int(line.harvested * 1000)
    place = Place(line.path, line.line, 0, ms, size, dict(enumerate(line.segments)))
    starts = range(0, max(line.size, 1), size)
    return _bad_batch([_bad_row(place, at, f"{UNREAD}: {reason}", size) for at in starts])
