"""Silver of one board, in one pass over its frames with numpy and Arrow, without Spark.

    Records    frames once each, in the order of their numbers; ticks without the wraps that show
               in them; a stretch ends where numbers are missing (anchors.py)
    facts      the few rows from which the board's clock and its losses follow (board_task.py)
    Times      the wall time of each record

A segment belongs to one board, so nothing of another board is needed. Messages that a bridge
brought from other boards are in `bridged`, under the board that they first came from.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..harvest import segments as s
from . import payloads
from .anchors import DRIFT_PPM, MISSING, MS
from .board_task import answers
from .bounds import UNKNOWN
from .corrections import NONE, Corrections
from .schemas import SILVER

_NEVER = 2**62
_NUMBERS = (
    "boot", "seq", "ticks", "type", "flags", "segment", "crc", "line", "offset",
)  # fmt: skip
Row = dict[str, Any]


class Records:
    """The records of a board, each identity once: the copy of the earliest harvest."""

    def __init__(self, frames: pa.Table) -> None:
        column = {name: frames.column(name).to_numpy() for name in _NUMBERS}
        harvested = pc.fill_null(frames.column("harvested_ms"), _NEVER).to_numpy()
        keys = (column["offset"], column["line"], harvested, column["seq"], column["boot"])
        order = np.lexsort(keys)
        boot, seq = column["boot"][order], column["seq"][order]
        starts = np.flatnonzero(_changes(boot, seq))
        self.copies = np.diff(np.append(starts, len(order)))
        crc = column["crc"][order]
        self.conflict = np.zeros(len(starts), bool)
        if len(starts):
            self.conflict = np.minimum.reduceat(crc, starts) != np.maximum.reduceat(crc, starts)
        kept = order[starts]
        self.rows = frames if _is_range(kept, frames.num_rows) else frames.take(pa.array(kept))
        self.ticks, self.type, self.flags, self.segment = (
            column[name][kept] for name in ("ticks", "type", "flags", "segment")
        )
        self.boot, self.seq, self.harvested = boot[starts], seq[starts], harvested[kept]
        self._count()

    def _count(self) -> None:
        """What is counted from record to record of a boot."""
        first = self.first = _changes(self.boot)
        before = np.where(first, -1, _shifted(self.seq))
        self.hole = np.where(self.seq > before + 1, before + 1, -1)
        wrapped = ~first & (self.ticks < _shifted(self.ticks))
        self.uptime = self.ticks + self._sum(wrapped) * s.TICKS_PERIOD
        self.passed = self._sum(self.type == s.ANCHOR)
        self.stretch = self._sum(~first & (self.seq - before - 1 > MISSING))

    def _sum(self, flags: Any) -> Any:
        """How many so far in the boot of each record."""
        total = np.cumsum(flags)
        starts = np.flatnonzero(self.first)
        lengths = np.diff(np.append(starts, len(total)))
        return total - np.repeat(total[starts] - flags[starts], lengths)

    def __len__(self) -> int:
        return len(self.seq)

    def row(self, i: int, fact: str) -> Row:
        """A record as a fact."""
        found = {"fact": fact, "hole": int(self.hole[i]), **self._at(i)}
        found |= {"flags": int(self.flags[i]), "payload": self.rows.column("payload")[i].as_py()}
        before: Row = {} if self.first[i] else self._at(i - 1)
        for name in ("uptime", "passed", "stretch", "harvested", "segment"):
            own = f"{name}_ms" if name in ("uptime", "harvested") else name
            found[f"{name}_before"] = before.get(own)
        if self.first[i]:
            found["segment_before"] = -1
        return found

    def _at(self, i: int) -> Row:
        harvested = int(self.harvested[i])
        return {
            "boot": int(self.boot[i]), "seq": int(self.seq[i]), "uptime_ms": int(self.uptime[i]),
            "passed": int(self.passed[i]), "stretch": int(self.stretch[i]),
            "segment": int(self.segment[i]),
            "harvested_ms": None if harvested == _NEVER else harvested,
        }  # fmt: skip

    def facts(self) -> Iterator[Row]:
        """Boots, anchors, told losses and holes."""
        starts = np.flatnonzero(self.first)
        ends = np.append(starts, len(self))[1:] - 1
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            yield self._at(end) | {"fact": "boot", "uptime_before": int(self.uptime[start])}
        for kind, fact in ((s.ANCHOR, "anchor"), (s.GAP, "told")):
            yield from (self.row(i, fact) for i in np.flatnonzero(self.type == kind).tolist())
        yield from (self.row(i, "hole") for i in np.flatnonzero(self.hole >= 0).tolist())


def _changes(*columns: Any) -> Any:
    """True where any of them is not as in the row before."""
    found = np.ones(len(columns[0]), bool)
    if len(found):
        found[1:] = False
    for column in columns:
        found[1:] |= column[1:] != column[:-1]
    return found


def _shifted(column: Any) -> Any:
    """The value of the row before."""
    return np.concatenate((column[:1], column[:-1]))


def _is_range(kept: Any, count: int) -> bool:
    return len(kept) == count and bool((kept == np.arange(count)).all())


def bad_facts(bad: list[Row]) -> Iterator[Row]:
    """What quarantine says of a board's losses."""
    torn = set()
    for row in bad:
        if row["seq"] is not None:
            yield row | {"fact": "bad"}
        elif row["segment"] is not None:
            torn.add((row["boot"], row["segment"]))
    # Of the others the segment may be known, and with it between which records they were.
    yield from ({"fact": "torn", "boot": boot, "segment": n, "seq": None} for boot, n in torn)


class Times:
    """Wall time, its error and the kind of clock of each record, from the pieces of its clock."""

    def __init__(self, records: Records, found: list[Row]) -> None:
        pieces = {
            (row["boot"], row["stretch"], row["passed"]): row
            for row in found
            if row["answer"] == "piece"
        }
        begins = np.flatnonzero(_changes(records.boot, records.stretch, records.passed))
        keys = zip(
            *(c[begins].tolist() for c in (records.boot, records.stretch, records.passed)),
            strict=True,
        )
        self._of_run = [pieces[key] for key in keys]
        self._lengths = np.diff(np.append(begins, len(records)))
        self.uptime = records.uptime + self._each("wraps", 0) * s.TICKS_PERIOD
        lows, highs = zip(*(self._side(side) for side in ("before", "after")), strict=True)
        low, high = np.maximum(*lows), np.minimum(*highs)
        known = np.repeat(
            np.array([row["clock"] != UNKNOWN for row in self._of_run], bool), self._lengths
        )
        self.known = known & (low > -_NEVER // 2) & (high < _NEVER // 2) & (low <= high)
        now = self.uptime * MS
        low, high = (np.where(self.known, bound + now, 0) for bound in (low, high))
        self.wall = (low + high) // 2000
        self.error = (high - low) // 2000 + 2

    def _each(self, name: str, missing: int) -> Any:
        values = [missing if row[name] is None else row[name] for row in self._of_run]
        return np.repeat(np.array(values, np.int64), self._lengths)

    def _side(self, side: str) -> tuple[Any, Any]:
        """The bounds of the offset that follow from the piece's one end."""
        spread = np.abs(self.uptime - self._each(f"{side}_ms", 0)) * DRIFT_PPM
        return (
            self._each(f"{side}_low", -_NEVER) - spread,
            self._each(f"{side}_high", _NEVER) + spread,
        )

    @cached_property
    def columns(self) -> dict[str, pa.Array]:
        """Those that messages and events have."""
        kinds = pa.array([row["clock"] for row in self._of_run], pa.string())
        runs = np.repeat(np.arange(len(self._of_run)), self._lengths)
        clock = kinds.take(pa.array(runs))
        unknown = pa.array(~self.known)
        return {
            "uptime_ms": pa.array(self.uptime),
            "wall": pa.array(self.wall, pa.timestamp("us", "UTC"), mask=~self.known),
            "wall_error_us": pa.array(self.error, mask=~self.known),
            "clock": pc.if_else(unknown, UNKNOWN, clock),
        }


def of_board(
    board: str, frames: pa.Table, bad: list[Row], corrections: Corrections = NONE
) -> dict[str, pa.Table]:
    """All tables of silver of a board; `bad` are its rows of quarantine."""
    records = Records(frames.combine_chunks())
    found = answers([*records.facts(), *bad_facts(bad)], corrections)
    both = pa.table({
        **{name: records.rows.column(name) for name in ("client", "topic", "payload")},
        **{name: pa.array(getattr(records, name))
           for name in ("boot", "segment", "seq", "flags", "stretch", "copies", "conflict")},
        **Times(records, found).columns,
    })  # fmt: skip
    sent, happened = (both.filter(pa.array(records.type == kind)) for kind in (s.MESSAGE, s.EVENT))
    has_origin = pa.array((sent.column("flags").to_numpy() & s.HAS_ORIGIN) != 0)
    return {
        "messages": _messages(sent.filter(pc.invert(has_origin))),
        "bridged": _bridged(board, sent.filter(has_origin)),
        "events": _events(happened),
        "anchors": _rows("anchors", board, found, "anchor"),
        "losses": _rows("losses", board, found, "loss"),
    }


def _messages(rows: pa.Table) -> pa.Table:
    flags = rows.column("flags").to_numpy()
    topic = rows.column("topic").combine_chunks().dictionary_encode()
    levels = pc.split_pattern(topic.dictionary, "/").take(topic.indices)
    for name, column in {
        "levels": levels,
        "qos": pa.array((flags & 3).astype(np.int32)),
        "retain": pa.array(flags & s.RETAIN != 0),
        "dup": pa.array(flags & s.DUP != 0),
        **payloads.typed(rows.column("payload").combine_chunks()),
    }.items():
        rows = rows.append_column(name, column)
    return rows


def _bridged(board: str, rows: pa.Table) -> pa.Table:
    """Their identity is the origin's, which is in front of the payload."""
    told = [data.as_py() for data in rows.column("payload")]
    numbers = [[int.from_bytes(data[i : i + 4], "little") for data in told] for i in (8, 12)]
    bodies = pa.array([data[s.ORIGIN_SIZE :] for data in told], pa.binary())
    own = {
        "recorder_boot": rows.column("boot"), "recorder_seq": rows.column("seq"),
        "recorder": pa.array([board] * len(told), pa.string()),
        "board": pa.array([data[:8].hex() for data in told], pa.string()),
    }  # fmt: skip
    changed = {
        "payload": bodies,
        **{n: pa.array(c, pa.int64()) for n, c in zip(("boot", "seq"), numbers, strict=True)},
    }
    for name, column in changed.items():
        rows = rows.set_column(rows.column_names.index(name), name, column)
    for name, column in own.items():
        rows = rows.append_column(name, column)
    return _messages(rows)


def _events(rows: pa.Table) -> pa.Table:
    """The detail of each by its meaning."""
    details = [
        _detail(kind, payload)
        for kind, payload in zip(
            rows.column("flags").to_pylist(), rows.column("payload").to_pylist(), strict=True
        )
    ]
    names = ("event", "code", "detail", "heap_bytes")
    schema = SILVER["events"].schema
    for i, name in enumerate(names):
        rows = rows.append_column(
            name, pa.array([detail[i] for detail in details], schema.field(name).type)
        )
    return rows


def _detail(kind: int, payload: bytes) -> tuple[str, int | None, str | None, int | None]:
    name = s.EVENTS.get(kind, f"event {kind}")
    if name in ("boot", "connect", "disconnect") and payload:
        return name, payload[0], None, None
    if name in ("subscribe", "unsubscribe", "table full"):
        return name, None, payload.decode(errors="replace"), None
    if name == "heap low-water" and len(payload) >= 4:
        return name, None, None, int.from_bytes(payload[:4], "little")
    return name, None, None, None


def _rows(name: str, board: str, found: list[Row], answer: str) -> pa.Table:
    schema = SILVER[name].schema
    rows = [row | {"board": board} for row in found if row["answer"] == answer]
    columns = [pa.array([row[field.name] for row in rows], field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)
