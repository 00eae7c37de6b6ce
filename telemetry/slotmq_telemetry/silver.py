"""Silver of one board, in one pass over its frames with numpy and Arrow, without Spark.

    Records    frames once each, in the order of their numbers; ticks without the wraps that show
               in them; a stretch ends where numbers are missing (clock.py)
    Times      the wall time of each record

A segment belongs to one board, so nothing of another board is needed. Messages that a bridge
brought from other boards are in `bridged`, under the board that they first came from.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from . import payloads
from .clock import DRIFT_PPM, MS, NEVER, UNKNOWN, Anchors, Run, runs
from .corrections import NONE, Corrections
from .harvest import segments as s
from .losses import loss_rows
from .schemas import SILVER

MISSING = 3  # numbers: more begin a stretch; four times three days are less than a wrap
_NUMBERS = (
    "boot", "seq", "ticks", "type", "flags", "segment", "crc", "line", "offset",
)  # fmt: skip
Row = dict[str, Any]


class Records:
    """The records of a board, each identity once: the copy of the earliest harvest."""

    def __init__(self, frames: pa.Table) -> None:
        column = {name: frames.column(name).to_numpy() for name in _NUMBERS}
        harvested = pc.fill_null(frames.column("harvested_ms"), NEVER).to_numpy()
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
        is_whole = np.array_equal(kept, np.arange(frames.num_rows))
        self.rows = frames if is_whole else frames.take(pa.array(kept))
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
        self.stretch = self._sum(~first & (self.seq - before - 1 > MISSING))

    def _sum(self, flags: Any) -> Any:
        """How many so far in the boot of each record."""
        total = np.cumsum(flags)
        starts = np.flatnonzero(self.first)
        lengths = np.diff(np.append(starts, len(total)))
        return total - np.repeat(total[starts] - flags[starts], lengths)

    def __len__(self) -> int:
        return len(self.seq)

    def runs(self, *columns: Any) -> tuple[list[int], list[int]]:
        """The first and the last of the records in a row that have the same there."""
        begins = np.flatnonzero(_changes(*columns))
        return begins.tolist(), (np.append(begins, len(self))[1:] - 1).tolist()


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


class Times:
    """Wall time, its error and the kind of clock of each record."""

    def __init__(self, records: Records, runs: Sequence[Run]) -> None:
        starts, _ = records.runs(records.boot, records.stretch)
        self._run = np.repeat(np.arange(len(runs)), np.diff([*starts, len(records)]))
        wraps = np.array([run.wraps for run in runs], np.int64)[self._run]
        self.uptime = records.uptime + wraps * s.TICKS_PERIOD
        found = [(i, *point) for i, run in enumerate(runs) for point in run.points]
        whose, *bounds = np.array(found, np.int64).reshape(-1, 4).T
        place, points = self._run << 42 | records.uptime, whose << 42 | bounds[0]
        # Between two points, and from where a run begins, the same points are the nearest.
        edges = np.unique(np.array([*starts, *np.searchsorted(place, points)], np.int64))
        edges = edges[edges < len(place)]
        lengths = np.diff([*edges, len(place)])
        before = np.searchsorted(points, place[edges], "right") - 1
        lows, highs = [], []
        for near in (before, before + 1):
            near = near.clip(0, len(points) - 1)
            is_own = whose[near] == self._run[edges]
            uptime, least, most = (column[near] for column in bounds)
            drift = np.abs(records.uptime - np.repeat(uptime, lengths)) * DRIFT_PPM
            lows.append(np.repeat(np.where(is_own, least, -NEVER), lengths) - drift)
            highs.append(np.repeat(np.where(is_own, most, NEVER), lengths) + drift)
        low, high = np.maximum(*lows), np.minimum(*highs)
        self._kinds = pa.array([run.kind for run in runs], pa.string())
        self.known = np.array([run.kind != UNKNOWN for run in runs], bool)[self._run]
        low, high = (np.where(self.known, at + records.uptime * MS, 0) for at in (low, high))
        self.wall = (low + high) // 2000
        self.error = (high - low) // 2000 + 2

    def at(self, i: int) -> int | None:
        """Of a record, in microseconds."""
        return int(self.wall[i]) if self.known[i] else None

    @cached_property
    def columns(self) -> dict[str, pa.Array]:
        """Those that messages and events have."""
        return {
            "uptime_ms": pa.array(self.uptime),
            "wall": pa.array(self.wall, pa.timestamp("us", "UTC"), mask=~self.known),
            "wall_error_us": pa.array(self.error, mask=~self.known),
            "clock": self._kinds.take(pa.array(self._run)),
        }


def of_board(
    board: str, frames: pa.Table, bad: list[Row], corrections: Corrections = NONE
) -> dict[str, pa.Table]:
    """All tables of silver of a board; `bad` are its rows of quarantine."""
    records = Records(frames.combine_chunks())
    anchors = Anchors(records, corrections)
    times = Times(records, runs(records, anchors))
    both = pa.table({
        **{name: records.rows.column(name) for name in ("client", "topic", "payload")},
        **{name: pa.array(getattr(records, name))
           for name in ("boot", "segment", "seq", "flags", "stretch", "copies", "conflict")},
        **times.columns,
    })  # fmt: skip
    sent, happened = (both.filter(pa.array(records.type == kind)) for kind in (s.MESSAGE, s.EVENT))
    has_origin = pa.array((sent.column("flags").to_numpy() & s.HAS_ORIGIN) != 0)
    made = {
        "messages": _messages(sent.filter(pc.invert(has_origin))),
        "bridged": _bridged(board, sent.filter(has_origin)),
        "events": _events(happened),
        "anchors": _anchors(records, anchors),
        "losses": [*loss_rows(records, times, bad)],
    }
    return {name: SILVER[name].made(board, rows) for name, rows in made.items()}


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


def _anchors(records: Records, anchors: Anchors) -> pa.Table:
    told = zip(anchors.quality.tolist(), anchors.corrected.tolist(), strict=True)
    return pa.table({
        "boot": records.boot[anchors.at], "seq": records.seq[anchors.at],
        "quality": pa.array(["corrected" if is_corrected else s.QUALITIES.get(kind, str(kind))
                             for kind, is_corrected in told], pa.string()),
        "believed": anchors.believed, "anchor": anchors.wall_ms * 1000,
        "error_ms": anchors.error_ms,
    })  # fmt: skip
