"""Random seasons, others in each run: the decoder finds every frame, and silver is true.

A run that fails prints its first seed; the environment variable SEASONS_FROM repeats that run.
"""

from __future__ import annotations

import os
import secrets
from collections import Counter
from pathlib import Path
from random import Random

import pyarrow as pa

from host_tests.telemetry.conftest import lines_of
from host_tests.telemetry.tables.campaign import knobs
from host_tests.telemetry.tables.rows import plain, wrong
from host_tests.telemetry.tables.truth import Row, Truth
from host_tests.telemetry.tables.world import season
from slotmq_tools.telemetry import decode, manifest, silver
from slotmq_tools.telemetry.schemas import BRONZE, SILVER

COUNT = 40


def test_every_frame_is_found_once_and_silver_is_true(tmp_path: Path) -> None:
    first = int(os.environ.get("SEASONS_FROM", secrets.randbelow(2**40)))
    print(f"SEASONS_FROM={first}")
    for seed in range(first, first + COUNT):
        random, harvest = Random(seed), tmp_path / f"{seed}"
        truth = Truth(season(harvest, seed, knobs(random)))
        limit = random.choice((5000, 1, 4 << 20))
        parts = (p for some in manifest.parts(lines_of(harvest), limit) for p in some)
        frames = [row for part in parts for batch in decode.frames_of(harvest, part)
                  for row in batch.to_pylist()]  # fmt: skip
        lies_there(frames, truth)
        assert [*wrong(truth, made(frames))] == [], seed


def made(frames: list[Row]) -> dict[str, list[Row]]:
    """The rows of silver."""
    rows: dict[str, list[Row]] = {name: [] for name in SILVER}
    for board in {row["board"] for row in frames} - {None}:
        own = [row for row in frames if row["board"] == board]
        good = pa.Table.from_pylist([row for row in own if not row["reason"]], BRONZE.schema)
        for name, table in silver.of_board(board, good, [r for r in own if r["reason"]]).items():
            rows[name] += [{"board": board, **row} for row in plain(table)]
    return rows


def lies_there(frames: list[Row], truth: Truth) -> None:
    """Good and bad frames, each with its place."""
    names = ("line", "offset", "board", "boot", "segment", "seq", "ticks", "type", "flags",
             "client", "topic", "payload", "crc")  # fmt: skip
    good = Counter(tuple(row[n] for n in names) for row in frames if not row["reason"])
    assert good == Counter(
        (t.line, t.offset, e.board, e.boot, e.segment, e.seq, e.uptime % 2**30, e.kind, e.flags,
         e.client, e.topic, e.payload, e.crc)
        for t in truth.season.harvest.taken for e in [t.entry]
    )  # fmt: skip
    places = ("line", "offset", "reason", "file")
    bad = Counter(tuple(row[n] for n in places) for row in frames if row["reason"])
    assert bad == Counter((b.line, b.offset, b.reason, b.file) for b in truth.season.harvest.bad)
