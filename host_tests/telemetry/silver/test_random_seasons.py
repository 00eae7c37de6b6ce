"""Random seasons, different ones in each run: decoder, silver and gold give the truth exactly."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from host_tests.telemetry.tables.rows import differences, keyed, plain
from slotmq_tools.telemetry import decode, manifest, silver
from slotmq_tools.telemetry.anchors import DRIFT_PPM, MS
from slotmq_tools.telemetry.clock import LIFE
from slotmq_tools.telemetry.schemas import BRONZE, SILVER
from slotmq_tools.telemetry.season.truth import Truth
from slotmq_tools.telemetry.season.world import Knobs, season

from .seasons import SEASONS

Row = dict[str, Any]
drawn = given(knobs=SEASONS, seed=st.integers(0, 2**32))
some = settings(
    max_examples=60, deadline=None, derandomize=False, print_blob=True,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


def lived(folder: str, knobs: Knobs, seed: int) -> tuple[Truth, list[Row]]:
    """The truth, and every frame that the decoder finds."""
    harvest = Path(folder) / "harvest"
    truth = Truth(season(harvest, seed, knobs))
    parts = (p for some in manifest.parts(manifest.read(harvest), 5000) for p in some)
    frames = [batch for part in parts for batch in decode.frames_of(harvest, part)]
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
def test_silver_is_the_truth(knobs: Knobs, seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        truth, frames = lived(folder, knobs, seed)
    boards = {row["board"] for row in frames} - {None}
    made = {board: silver.of_board(board, *parted(frames, board)) for board in boards}
    for name in SILVER:
        rows = [
            {"board": board, **row} for board in boards for row in plain(of(made[board], name))
        ]
        assert differences(keyed(rows), keyed(getattr(truth, name)())) == [], name
    true_times = dict(truth.true_times())
    for board, tables in made.items():
        records = sorted(
            (row for name in ("messages", "events") for row in plain(of(tables, name))),
            key=lambda row: (row["boot"], row["seq"]),
        )
        seen = silver.Records(parted(frames, board)[0])
        ticks = dict(zip(zip(seen.boot, seen.seq, strict=True), seen.uptime.tolist(), strict=True))
        for row in records:
            row["seen_ms"] = ticks[row["boot"], row["seq"]]
            key = (board, row["boot"], row["seq"])
            if row["wall_us"] is not None and truth.is_promised(key):
                assert abs(row["wall_us"] - true_times[key] * 1000) <= row["wall_error_us"]
        assert not [*without_room(records)]
    for row in (row for tables in made.values() for row in of(tables, "losses").to_pylist()):
        if row["reasons"] == ["unexplained"] and row["boots"] == 1:
            end = row["last_seq"] if row["last_seq"] is not None else 2**30
            assert not any(
                row["first_seq"] <= seq <= end
                for board, boot, seq in truth.harvest.hidden
                if (board, boot) == (row["board"], row["boot"])
            )


def parted(frames: list[Row], board: str) -> tuple[pa.Table, list[Row]]:
    """A board's rows of bronze and of quarantine."""
    own = [row for row in frames if row["board"] == board]
    good = [row for row in own if row["reason"] is None]
    return pa.Table.from_pylist(good, BRONZE.schema), [row for row in own if row["reason"]]


def of(tables: dict[str, pa.Table], name: str) -> pa.Table:
    """A table as its files have it."""
    names = [n for n in SILVER[name].schema.names if n in tables[name].column_names]
    return tables[name].select(names)


def without_room(records: list[Row]) -> Iterator[Row]:
    """Of one board those that are earlier than what was recorded in front of them allows, whoever
    is wrong: no two times that are told may contradict each other."""
    reached: int | None = None  # ns, at the earliest
    for before, row in pairwise([{"boot": -LIFE, "seen_ms": 0}, *records]):
        if row["boot"] - before["boot"] > LIFE:
            reached = None
        elif reached is not None and row["boot"] == before["boot"]:
            reached += (row["seen_ms"] - before["seen_ms"]) * (MS - DRIFT_PPM)
        if row["wall_us"] is not None and row["clock"] != "suspect":
            middle, error = row["wall_us"], row["wall_error_us"]
            if reached is not None and (middle + error) * 1000 < reached:
                yield row
            reached = max((middle - error) * 1000, reached or 0)
