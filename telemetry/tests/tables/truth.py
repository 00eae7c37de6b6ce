"""What is true of a season, and what tables must have: every record once and as it was written,
times whose bounds hold, losses that are all that is missing. No rule is the pipeline's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from slotmq_telemetry.season.harvest import Taken

from .world import Season

Key = tuple[str, int, int]
Row = dict[str, Any]
_EVENTS = (
    "boot", "connect", "disconnect", "will", "takeover", "subscribe", "table full",
    "heap low-water", "unsubscribe",
)  # fmt: skip
_QUALITIES = {1: "rtc", 2: "message", 3: "harvester", 4: "ntp"}
_FAR = 10_000  # boots
_WRAP = 2**30  # ms
_KEYS = ("board", "boot", "seq", "recorder", "recorder_boot", "recorder_seq")


def _number(data: bytes) -> int:
    return int.from_bytes(data, "little")


class Truth:
    """What one season has recorded and was harvested."""

    def __init__(self, season: Season) -> None:
        self.season = season
        copies: dict[Key, list[Taken]] = defaultdict(list)
        for taken in season.harvest.taken:
            copies[taken.entry.board, taken.entry.boot, taken.entry.seq].append(taken)
        self._copies = {key: len(found) for key, found in copies.items()}
        self.entries = {key: found[0].entry for key, found in copies.items()}
        self.times = {
            (board.hex, *key): at for board in season.boards for key, at in board.times.items()
        }
        # No clock was wrong, so that each time must be right.
        self.is_honest = not season.false_anchors

    def rows(self, table: str) -> list[Row]:
        """Every row of messages, bridged, events or anchors, without what is estimated."""
        made = {"events": self._event, "anchors": self._anchor}.get(table, self._message)
        kind = {"events": 3, "anchors": 4}.get(table, 2)
        bridged = table == "bridged"
        return [
            made(key) for key, entry in self.entries.items()
            if entry.kind == kind and (kind != 2 or bool(entry.flags & 16) == bridged)
        ]  # fmt: skip

    def _common(self, key: Key) -> Row:
        entry = self.entries[key]
        return {
            "board": key[0], "boot": key[1], "seq": key[2], "segment": entry.segment,
            "client": entry.client, "copies": self._copies[key], "conflict": False,
        }  # fmt: skip

    def _anchor(self, key: Key) -> Row:
        entry = self.entries[key]
        seconds, ms, error = (_number(entry.payload[i:j]) for i, j in ((0, 4), (4, 6), (6, 10)))
        quality = _QUALITIES.get(entry.flags, str(entry.flags))
        about = {"anchor_us": (seconds * 1000 + ms) * 1000, "error_ms": error, "quality": quality}
        return dict(zip(_KEYS, key, strict=False)) | about

    def _event(self, key: Key) -> Row:
        entry = self.entries[key]
        known = entry.flags <= len(_EVENTS)
        name = _EVENTS[entry.flags - 1] if known else f"event {entry.flags}"
        name = "time passes" if entry.flags == 10 else name
        text = name in ("subscribe", "unsubscribe", "table full")
        return self._common(key) | {
            "event": name, "payload": entry.payload,
            "code": entry.payload[0] if entry.flags <= 3 else None,
            "detail": entry.payload.decode() if text else None,
            "heap_bytes": _number(entry.payload) if name == "heap low-water" else None,
        }  # fmt: skip

    def _message(self, key: Key) -> Row:
        entry = self.entries[key]
        data, told = entry.payload, {}
        if entry.flags & 16:
            told = dict(zip(_KEYS[3:], key, strict=True)) | {
                "board": data[:8].hex(), "boot": _number(data[8:12]), "seq": _number(data[12:16]),
            }  # fmt: skip
            data = data[16:]
        payload = self.season.payloads[data]
        assert entry.topic is not None
        return self._common(key) | told | {
            "topic": entry.topic, "levels": entry.topic.split("/"),
            "qos": entry.flags & 3, "retain": bool(entry.flags & 4), "dup": bool(entry.flags & 8),
            "payload": data, "kind": payload.kind, "number": payload.number,
            "json": payload.json, "text": payload.text,
        }  # fmt: skip

    # What is estimated

    def wrong_times(self, rows: list[Row], anchors: list[Row]) -> Iterator[str]:
        """What is wrong with the times of messages and events, and with what is believed."""
        rows = sorted(rows, key=lambda row: (row["board"], row["boot"], row["seq"]))
        for row in rows:
            key = row["board"], row["boot"], row["seq"]
            off = abs((row["wall_us"] or 0) - self.times[key] * 1000)
            if (row["uptime_ms"] - self.entries[key].uptime) % _WRAP:
                yield f"{key}: an uptime that its ticks do not have"
            if (row["wall_us"] is None) != (row["clock"] == "unknown"):
                yield f"{key}: {row['clock']}"
            if self.is_honest and row["wall_us"] is not None and off > row["wall_error_us"]:
                yield f"{key}: {row['clock']}, and wrong by {off} us"
        for one, other in pairwise(rows):
            if (one["board"], one["boot"]) == (other["board"], other["boot"]):
                yield from self._wrong_wraps(one, other)
        for row in anchors:
            if not row["believed"] and (row["quality"] == "ntp" or self.is_honest):
                yield f"{row}: it is right"
        yield from self._without_room(rows)

    def _wrong_wraps(self, one: Row, other: Row) -> Iterator[str]:
        true = [self.entries[row["board"], row["boot"], row["seq"]].uptime for row in (one, other)]
        passed = other["uptime_ms"] - one["uptime_ms"]
        is_seen = other["seq"] - one["seq"] <= 4
        is_known = self.is_honest and one["clock"] == other["clock"] == "anchored"
        if (is_seen or is_known) and passed != true[1] - true[0]:
            yield f"{one['board']} {one['boot']} {one['seq']}: {passed} ms to the next"

    def _without_room(self, rows: list[Row]) -> Iterator[str]:
        """Whoever is wrong, no two times contradict what was recorded between them, but those
        that nobody vouches for."""
        reached: int | None = None  # ns, at the earliest
        for before, row in pairwise([{"board": "", "boot": 0, "uptime_ms": 0}, *rows]):
            near = row["board"] == before["board"] and row["boot"] - before["boot"] <= _FAR
            reached = reached if near else None
            if reached is not None and row["boot"] == before["boot"]:
                reached += (row["uptime_ms"] - before["uptime_ms"]) % _WRAP * (10**6 - 100)
            if row["clock"] in ("anchored", "between"):
                middle, error = row["wall_us"], row["wall_error_us"]
                if reached is not None and (middle + error) * 1000 < reached:
                    yield f"{row}: before what was recorded in front of it"
                reached = max((middle - error) * 1000, reached or 0)

    def wrong_losses(self, losses: list[Row]) -> Iterator[str]:
        """They and what is there are all numbers up to the last of each boot, each once."""
        last: dict[tuple[str, int], int] = {}
        for board, boot, seq in self.entries:
            last[board, boot] = max(seq, last.get((board, boot), -1))
        for (board, boot), end in last.items():
            told = [r for r in losses if (r["board"], r["boot"]) == (board, boot)]
            gone = [n for r in told for n in _numbers(r, end)]
            there = [seq for seq in range(end + 1) if (board, boot, seq) in self.entries]
            if sorted(gone + there) != [*range(end + 1)]:
                yield f"{board} {boot}: {end + 1} numbers, {len(gone)} lost"
        for row in losses:
            count = None if row["last_seq"] is None else row["last_seq"] - row["first_seq"] + 1
            if row["lost"] != count:
                yield f"{row}: {count} are lost"
            for number in _numbers(row, 10**6) if row["reasons"] == ["unexplained"] else ():
                if (row["board"], row["boot"], number) in self.season.harvest.hidden:
                    yield f"{row}: it is in quarantine"
        for board in {board for board, _ in last}:
            boots = [(b, b) for name, b in last if name == board]
            boots += [(row["boot"], row["boot"] + row["boots"] - 1)
                      for row in losses if row["board"] == board]  # fmt: skip
            if any(1 < b - a <= _FAR for (_, a), (b, _) in pairwise(sorted(boots))):
                yield f"{board}: a boot without records or loss"


def _numbers(row: Row, end: int) -> range:
    last = row["last_seq"] if row["last_seq"] is not None else 2**40
    return range(row["first_seq"], min(last, end) + 1)
