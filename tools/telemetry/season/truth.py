"""What silver must contain after a season, calculated the simple and slow way from what happened.

It shares only the rules with the pipeline: numbers are sets, duplicates are found by comparing all
with all, and times are those of own_clock.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import groupby, pairwise
from typing import Any

from .clocks import told
from .harvest import Harvest, Taken
from .own_clock import AllClocks
from .world import Season

Key = tuple[str, int, int]
Row = dict[str, Any]
_EVENTS = (
    "boot", "connect", "disconnect", "will", "takeover", "subscribe", "table full",
    "heap low-water", "unsubscribe", "time passes",
)  # fmt: skip
_Told = tuple[int, int, str, int]  # first, how many, why, segment
_OPEN = 0xFFFFFFFF  # how many: nobody knows
_QUALITIES = {1: "rtc", 2: "message", 3: "harvester", 4: "ntp"}
_REASONS = ("overwritten", "ring full", "write failed")


def _number(data: bytes) -> int:
    return int.from_bytes(data, "little")


class Truth:
    """The right answers for one season."""

    def __init__(self, season: Season) -> None:
        self._season = season
        copies: dict[Key, list[Taken]] = defaultdict(list)
        for taken in season.harvest.taken:
            copies[taken.entry.board, taken.entry.boot, taken.entry.seq].append(taken)
        self.copies = {key: len(found) for key, found in copies.items()}
        self.first = {
            key: min(found, key=lambda t: (t.harvested_ms, t.line, t.offset))
            for key, found in copies.items()
        }
        self.entries = {key: taken.entry for key, taken in self.first.items()}
        self.boots: dict[str, list[int]] = defaultdict(list)
        self.seqs: dict[tuple[str, int], list[int]] = defaultdict(list)
        for board, boot, seq in sorted(self.entries):
            if boot not in self.boots[board]:
                self.boots[board].append(boot)
            self.seqs[board, boot].append(seq)
        self.torn: dict[tuple[str, int], list[int]] = defaultdict(list)
        for bad in season.harvest.bad:
            if bad.segment is not None:
                self.torn[bad.segment[:2]].append(bad.segment[2])
        self.clocks = AllClocks(self.first)

    @property
    def harvest(self) -> Harvest:
        """What lies in the folder."""
        return self._season.harvest

    def true_times(self) -> Iterator[tuple[Key, int]]:
        """When each record truly was, in ms."""
        for board in self._season.boards:
            for (boot, seq), at in board.true_times.items():
                if (board.hex, boot, seq) in self.entries:
                    yield (board.hex, boot, seq), at

    def wall(self, key: Key) -> tuple[int, int, str] | None:
        """Estimate, error in µs, and how it is known."""
        return self.clocks.wall(key)

    def is_promised(self, key: Key) -> bool:
        """The true time must be inside of the bounds: no clock that is wrong made them."""
        own, before, behind = self.clocks.sources(key)
        return not any(
            anchor in own or self._is_ahead(anchor) == (anchor in before)
            for anchor in self._false & (own | before | behind)
        )

    @cached_property
    def _false(self) -> set[Key]:
        return self._season.false_anchors

    @cached_property
    def _true(self) -> dict[Key, int]:
        return dict(self.true_times())

    def _is_ahead(self, anchor: Key) -> bool:
        """It says that it is later than it truly was."""
        return told(self.entries[anchor])[0] > self._true[anchor]

    # Tables

    def anchors(self) -> list[Row]:
        """Every anchor, and whether it is to be believed."""
        found = []
        for key, entry in self.entries.items():
            if entry.kind == 4:
                wall, error = told(entry)
                found.append({
                    "board": key[0], "boot": key[1], "seq": key[2], "error_ms": error,
                    "quality": _QUALITIES.get(entry.flags, str(entry.flags)),
                    "anchor_us": wall * 1000,
                    "believed": self.clocks.is_believed(key),
                })  # fmt: skip
        return found

    def _common(self, key: Key) -> Row:
        wall = self.wall(key) or (None, None, "unknown")
        entry = self.entries[key]
        return {
            "board": key[0], "boot": key[1], "seq": key[2], "segment": entry.segment,
            "uptime_ms": self.clocks.uptime(key), "wall_us": wall[0], "wall_error_us": wall[1],
            "clock": wall[2], "client": entry.client, "copies": self.copies[key],
            "conflict": False,
        }  # fmt: skip

    def events(self) -> list[Row]:
        """Every event."""
        found = []
        for key, entry in self.entries.items():
            if entry.kind == 3:
                name = (
                    _EVENTS[entry.flags - 1]
                    if entry.flags <= len(_EVENTS)
                    else f"event {entry.flags}"
                )
                text = name in ("subscribe", "unsubscribe", "table full")
                found.append({
                    **self._common(key), "stretch": self.clocks.stretch(key),
                    "event": name, "payload": entry.payload,
                    "code": entry.payload[0] if entry.flags <= 3 else None,
                    "detail": entry.payload.decode() if text else None,
                    "heap_bytes": _number(entry.payload) if name == "heap low-water" else None,
                })  # fmt: skip
        return found

    def messages(self) -> list[Row]:
        """Every message that its own board recorded."""
        return [self._message(key) for key, e in self.entries.items() if e.kind == 2
                and not e.flags & 16]  # fmt: skip

    def bridged(self) -> list[Row]:
        """Every message of another board, under the number that it had there."""
        found = []
        for key, entry in self.entries.items():
            if entry.kind == 2 and entry.flags & 16:
                origin = entry.payload[:16]
                found.append(self._message(key) | {
                    "recorder": key[0], "recorder_boot": key[1], "recorder_seq": key[2],
                    "board": origin[:8].hex(), "boot": _number(origin[8:12]),
                    "seq": _number(origin[12:]),
                })  # fmt: skip
        return found

    def _message(self, key: Key) -> Row:
        entry = self.entries[key]
        data = entry.payload[16:] if entry.flags & 16 else entry.payload
        payload = self._season.payloads[data]
        assert entry.topic is not None
        return {
            **self._common(key), "topic": entry.topic, "levels": entry.topic.split("/"),
            "qos": entry.flags & 3, "retain": bool(entry.flags & 4), "dup": bool(entry.flags & 8),
            "payload": data, "kind": payload.kind, "number": payload.number,
            "json": payload.json, "text": payload.text,
        }  # fmt: skip

    def losses(self) -> list[Row]:
        """Every run of numbers that is lost."""
        told: dict[tuple[str, int], list[_Told]] = defaultdict(list)
        for key, entry in self.entries.items():
            if entry.kind == 5:
                boot, first, count, segment = (
                    _number(entry.payload[i : i + 4]) for i in (0, 4, 8, 12)
                )
                told[key[0], boot].append((first, count, _REASONS[entry.flags - 1], segment))
        found: list[Row] = []
        every = {*self.seqs, *told, *self.torn}
        for board in {board for board, _ in every}:
            boots = sorted({b for name, b in every if name == board})
            for boot in boots:
                found += self._of_boot(board, boot, told[board, boot])
            for one, other in pairwise(boots):
                if other - one > 1:
                    row = self._loss(board, one + 1, 0, None, [])
                    found.append(row | {"boots": other - one - 1})
        return found

    def _of_boot(self, board: str, boot: int, told: list[_Told]) -> Iterable[Row]:
        present = set(self.seqs.get((board, boot), []))
        given = present.union(*(range(f, f + n) for f, n, _, _ in told if n != _OPEN))
        gone = sorted(set(range(max(given, default=-1) + 1)) - present)
        behind = max(present, default=-1) + 1
        is_open = any(n == _OPEN and first >= behind for first, n, _, _ in told)
        if is_open or not given:
            gone = [number for number in gone if number < behind]
            yield self._loss(board, boot, behind, None, told)
        for _, run in groupby(enumerate(gone), key=lambda pair: pair[1] - pair[0]):
            numbers = [number for _, number in run]
            yield self._loss(board, boot, numbers[0], numbers[-1], told)

    def _loss(
        self, board: str, boot: int, first: int, last: int | None, told: list[_Told]
    ) -> Row:  # fmt: skip
        end = 2**40 if last is None else last
        fitting = [
            (reason, segment)
            for start, count, reason, segment in told
            if max(start, first) < min(start + count, end + 1)
        ]
        if self._is_torn(board, boot, first, end):
            fitting.append(("quarantined", 0xFFFFFFFF))
        around = [
            self.wall((board, boot, seq)) if (board, boot, seq) in self.entries else None
            for seq in (first - 1, end + 1)
        ]
        return {
            "board": board, "boot": boot, "boots": 1, "first_seq": first, "last_seq": last,
            "lost": None if last is None else last - first + 1,
            "reasons": sorted({reason for reason, _ in fitting}) or ["unexplained"],
            "segments": sorted({segment for _, segment in fitting} - {0xFFFFFFFF}),
            "after_us": around[0] and around[0][0], "before_us": around[1] and around[1][0],
        }  # fmt: skip

    def _is_torn(self, board: str, boot: int, first: int, last: int) -> bool:
        """Was anything damaged behind the last record before a hole that can be read, and
        before the segment of the first one behind it?"""
        there = self.seqs.get((board, boot), [])
        before = [self.entries[board, boot, seq].segment for seq in there if seq < first]
        behind = [self.entries[board, boot, seq].segment for seq in there if seq > last]
        return any(
            all(segment <= torn for segment in before) and all(torn < one for one in behind)
            for torn in self.torn.get((board, boot), [])
        )
