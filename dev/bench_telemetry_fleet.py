"""What a large fleet costs beside its records: manifest, planning and commits of 10,000 boards.

Every day each board makes a bundle, so that each table of silver and gold gets a file for each
board, and bronze one more. The files themselves are not written.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from slotmq_telemetry import build, manifest
from slotmq_telemetry.engine import Engine
from slotmq_telemetry.harvest.manifest import Line, Segment, locked
from slotmq_telemetry.lake import File, Lake
from slotmq_telemetry.schemas import BRIDGED, BRONZE, GOLD, QUARANTINE, SILVER, Table

SIZE = 65536
Cost = Callable[[Callable[[], object]], Any]


def name(board: int) -> str:
    return f"{0x286F_0000_0000_0000 + board:016x}"


def measure(cost: Cost, folder: Path, boards: int, days: int) -> dict[str, Any]:
    """The cost of each step on the last day."""
    lake = Lake(folder / "tables").made()
    for day in range(days - 1):
        _harvest(folder, boards, day)
        lake.commit(BRONZE, _files(BRONZE, boards, f"{day:032x}"))
    lake.commit(QUARANTINE, [])
    _ = _build(lake, boards)
    last = days - 1
    fresh = f"{last:032x}"
    found = {
        "harvest: a line for each bundle": cost(lambda: _harvest(folder, boards, last)),
        "manifest: what is new, in tasks": cost(lambda: _plan(folder, boards * last, boards)),
        "bronze: commit": cost(lambda: lake.commit(BRONZE, _files(BRONZE, boards, fresh))),
        "silver and gold: plan and commit": cost(lambda: _build(lake, boards)),
        "nothing new": cost(lambda: _nothing(folder, lake, boards * days)),
    }
    assert len(lake.sizes(BRONZE)) == boards * days
    return found


def _harvest(folder: Path, boards: int, day: int) -> None:
    with locked(folder / "harvest") as lines:
        lines.append(*(
            Line(f"bundles/{day}-{board}.smq", 2 * SIZE, "", SIZE, 1e9 + day, "benchmark",
                 [Segment(name(board), 1, 2 * day + n, 0, 999) for n in range(2)])
            for board in range(boards)
        ))  # fmt: skip


def _plan(folder: Path, first: int, count: int) -> None:
    with manifest.opened(folder / "harvest") as lines:
        new = lines.filled(lines.lines(first))
    assert len(new) == count and sum(map(len, manifest.parts(new, 16 << 20))) == count


def _files(table: Table, boards: int, file: str) -> list[File]:
    return [
        File(table.name, f"board={name(board)}/{file}.parquet", 99_000, 900)
        for board in range(boards)
    ]


class _Promise(Engine):
    """Says of each task's files that they are there."""

    def __init__(self, tables: list[Table]) -> None:
        super().__init__(lambda: None)  # type: ignore[arg-type, return-value]
        self._tables = tables

    def run(self, _task: Any, work: Any, _size: int) -> list[File]:
        return [
            File(table.name, f"board={each['board']}/{each['name']}.parquet", 99_000, 900)
            for table in self._tables
            for each in work
        ]


def _build(lake: Lake, boards: int) -> int:
    silver = _Promise([table for table in SILVER.values() if table is not BRIDGED])
    count = build.build_silver(silver, lake).boards
    assert count == build.build_gold(_Promise([*GOLD.values()]), lake).boards == boards
    return count


def _nothing(folder: Path, lake: Lake, lines: int) -> None:
    with manifest.opened(folder / "harvest") as there:
        assert there.count() == lines
    none = _Promise([])
    assert build.build_silver(none, lake) == build.build_gold(none, lake) == build.Built()
