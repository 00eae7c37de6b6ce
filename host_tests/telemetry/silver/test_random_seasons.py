"""Random seasons, different ones in each run: decoder, clocks and losses give the truth exactly.

Spark's part is repeated here in plain Python; host_tests/telemetry/spark tests Spark itself.
"""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slotmq_tools.telemetry import harvest_source, manifest, segment
from slotmq_tools.telemetry.anchors import DRIFT_PPM, MISSING, MS
from slotmq_tools.telemetry.board_task import answers
from slotmq_tools.telemetry.bounds import UNKNOWN, Bound, Piece
from slotmq_tools.telemetry.clock import LIFE
from slotmq_tools.telemetry.season.truth import Truth
from slotmq_tools.telemetry.season.world import Knobs, season

from .seasons import SEASONS

Row = dict[str, Any]
drawn = given(knobs=SEASONS, seed=st.integers(0, 2**32))
some = settings(
    max_examples=100, deadline=None, derandomize=False, print_blob=True,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


def lived(folder: str, knobs: Knobs, seed: int) -> tuple[Truth, list[Row]]:
    """The truth, and every frame that the decoder finds."""
    harvest = Path(folder) / "harvest"
    truth = Truth(season(harvest, seed, knobs))
    parts = (p for some in manifest.parts(manifest.read(harvest), 5000) for p in some)
    frames = [batch for part in parts for batch in harvest_source.frames_of(harvest, part)]
    return truth, [row for batch in frames for row in batch.to_pylist()]


@drawn
@some
def test_every_frame_is_found_once_where_it_lies(knobs: Knobs, seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        truth, frames = lived(folder, knobs, seed)
    good = [row for row in frames if row["reason"] is None]
    found = Counter((r["line"], r["offset"], r["board"], r["boot"], r["seq"]) for r in good)
    assert found == Counter(
        (t.line, t.offset, t.entry.board, t.entry.boot, t.entry.seq) for t in truth.harvest.taken
    )
    bad = [row for row in frames if row["reason"] is not None]
    assert Counter((r["line"], r["offset"], r["reason"], r["file"]) for r in bad) == Counter(
        (b.line, b.offset, b.reason, b.file) for b in truth.harvest.bad
    )


@drawn
@some
def test_clocks_anchors_and_losses_are_those_of_the_truth(knobs: Knobs, seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        truth, frames = lived(folder, knobs, seed)
    records = ordered([row for row in frames if row["reason"] is None])
    torn = [row for row in frames if row["reason"] and row["seq"] is None]
    found = [
        row
        for name in records.keys() | {row["board"] for row in torn if row["board"]}
        for row in answers([
            *facts(records[name]),
            *(row | {"fact": "torn"} for row in torn if row["board"] == name),
        ])
    ]  # fmt: skip
    anchors = [row for row in found if row["answer"] == "anchor"]
    names: tuple[str, ...] = (
        "board",
        "boot",
        "seq",
        "error_ms",
        "quality",
        "anchor_us",
        "believed",
    )
    assert by_identity(anchors, names) == by_identity(truth.anchors(), names)
    losses = [renamed(row) for row in found if row["answer"] == "loss"]
    names = ("board", "boot", "boots", "first_seq", "last_seq", "reasons", "segments", "after_us",
             "before_us")  # fmt: skip
    assert by_identity(losses, names) == by_identity(truth.losses(), names)
    for row in losses:
        if row["reasons"] == ["unexplained"] and row["boots"] == 1:
            end = row["last_seq"] if row["last_seq"] is not None else 2**30
            assert not any(
                row["first_seq"] <= seq <= end
                for board, boot, seq in truth.harvest.hidden
                if (board, boot) == (row["board"], row["boot"])
            )
    pieces = {where(row): row for row in found if row["answer"] == "piece"}
    true_times = dict(truth.true_times())
    for record in (row for board in records.values() for row in board):
        key = (record["board"], record["boot"], record["seq"])
        piece = pieces[where(record)]
        time = record["time"] = wall(piece, record["uptime_ms"])
        if time is not None and truth.is_promised(key):
            assert abs(time[0] - true_times[key] * 1000) <= time[1]
        assert time == truth.wall(key)
        assert record["uptime_ms"] + piece["wraps"] * segment.TICKS_PERIOD == truth.clocks.uptime(
            key
        )
    assert not [row for board in records.values() for row in without_room(board)]


def without_room(records: list[Row]) -> Iterator[Row]:
    """Of one board those that are earlier than what was recorded in front of them allows, whoever
    is wrong: no two times that are told may contradict each other."""
    reached: int | None = None  # ns, at the earliest
    for before, row in pairwise([{"boot": -LIFE, "uptime_ms": 0}, *records]):
        if row["boot"] - before["boot"] > LIFE:
            reached = None
        elif reached is not None and row["boot"] == before["boot"]:
            reached += (row["uptime_ms"] - before["uptime_ms"]) * (MS - DRIFT_PPM)
        if row["time"] is not None:
            middle, error, _ = row["time"]
            if reached is not None and (middle + error) * 1000 < reached:
                yield row
            reached = max((middle - error) * 1000, reached or 0)


def where(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("board", "boot", "stretch", "passed"))


def by_identity(rows: list[Row], names: tuple[str, ...]) -> list[str]:
    return sorted(repr([row.get(name) for name in names]) for row in rows)


def renamed(row: Row) -> Row:
    names = {"seq": "first_seq", "last": "last_seq", "from_us": "after_us", "to_us": "before_us"}
    return {names.get(name, name): value for name, value in row.items()}


def ordered(frames: list[Row]) -> dict[str, list[Row]]:
    """By board, each record once, as silver.ordered has them."""
    frames = sorted(frames, key=lambda r: (r["harvested_ms"], r["line"], r["offset"]))
    once = {(r["board"], r["boot"], r["seq"]): r for r in reversed(frames)}
    boards: dict[str, list[Row]] = defaultdict(list)
    before: Row = {}
    for _, row in sorted(once.items()):
        same = bool(before) and (before["board"], before["boot"]) == (row["board"], row["boot"])
        last = before if same else {"seq": -1, "ticks": 0, "wraps": 0, "passed": 0, "stretch": 0}
        wraps = last["wraps"] + (row["ticks"] < last["ticks"])
        hole = last["seq"] + 1 if row["seq"] > last["seq"] + 1 else None
        row |= {
            "wraps": wraps,
            "uptime_ms": row["ticks"] + wraps * segment.TICKS_PERIOD,
            "passed": last["passed"] + (row["type"] == segment.ANCHOR),
            "uptime_before": last.get("uptime_ms"),
            "passed_before": last["passed"] if same else None,
            "harvested_before": last["harvested_ms"] if same else None,
            "segment_before": last["segment"] if same else -1,
            "hole": hole,
            "stretch": last["stretch"] + (same and row["seq"] > last["seq"] + 1 + MISSING),
            "stretch_before": last["stretch"] if same else None,
        }
        boards[row["board"]].append(row)
        before = row
    return boards


def facts(records: list[Row]) -> list[Row]:
    """What silver.facts takes out of them."""
    found: list[Row] = []
    for boot in sorted({row["boot"] for row in records}):
        own = [row for row in records if row["boot"] == boot]
        found.append(own[-1] | {"fact": "boot", "uptime_before": own[0]["uptime_ms"]})
    kinds = {segment.ANCHOR: "anchor", segment.GAP: "told"}
    found += [row | {"fact": kinds[row["type"]]} for row in records if row["type"] in kinds]
    return found + [row | {"fact": "hole"} for row in records if row["hole"] is not None]


def wall(piece: Row, uptime: int) -> tuple[int, int, str] | None:
    """As silver.timed has it: estimate and error in µs, and how it is known."""
    before, after = (
        Bound(piece[f"{side}_ms"], piece[f"{side}_low"], piece[f"{side}_high"])
        if piece[f"{side}_ms"] is not None
        else None
        for side in ("before", "after")
    )
    both = Piece(
        piece["boot"], piece["stretch"], piece["passed"], piece["wraps"], before, after,
        piece["clock"],
    ).at(uptime)  # fmt: skip
    if both is None or piece["clock"] == UNKNOWN:
        return None
    return sum(both) // 2000, (both[1] - both[0]) // 2000 + 2, piece["clock"]
