"""Tables as plain rows, compared with the truth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from slotmq_telemetry import bronze, build
from slotmq_telemetry.engine import Engine
from slotmq_telemetry.lake import Lake
from slotmq_telemetry.schemas import ALL, GOLD, SILVER
from slotmq_telemetry.season import greenhouse

from .campaign import Campaign
from .truth import Row, Truth

Rows = dict[tuple[Any, ...], Row]
RECORDS = ("messages", "bridged", "events", "anchors")
HERE = Engine(lambda: pytest.fail("a session of Spark"))


def greenhouse_tables(folder: Path) -> Lake:
    """The tables of the demo's greenhouse, in a folder in `folder`."""
    harvest = greenhouse.grow(folder / "harvest")
    return tables_of(harvest.folder, folder, greenhouse.TOML)


def tables_of(harvest: Path, folder: Path, boards: str = "") -> Lake:
    """Those of a harvest folder, in a folder in `folder`."""
    lake = Lake(folder / "tables").made()
    (lake.folder / "boards.toml").write_text(boards)
    bronze.ingest(HERE, harvest, lake)
    assert not build.build_silver(HERE, lake).failed
    assert not build.build_gold(HERE, lake).failed
    return lake


@dataclass
class Made:
    """A campaign and its tables."""

    campaign: Campaign
    lake: Lake

    def ingest(self, engine: Engine = HERE) -> tuple[int, int]:
        """Make what is new; how many boards had something new, in silver and in gold."""
        bronze.ingest(engine, self.campaign.folder, self.lake.made())
        silver, gold = build.build_silver(engine, self.lake), build.build_gold(engine, self.lake)
        assert not silver.failed and not gold.failed
        return silver.boards, gold.boards

    def rows(self, name: str) -> list[Row]:
        return plain(self.lake.rows((SILVER | GOLD)[name]))

    def sorted(self) -> dict[str, list[str]]:
        """All rows of all tables."""
        return {t.name: sorted(map(repr, self.lake.rows(t).to_pylist())) for t in ALL}

    def wrong(self) -> list[str]:
        """What differs from the truth."""
        rows = {name: self.rows(name) for name in SILVER}
        return [
            f"{truth.season.place}: {text}"
            for truth in self.campaign.truths
            for text in wrong(truth, rows)
        ]


def wrong(truth: Truth, rows: dict[str, list[Row]]) -> Iterator[str]:
    """What tables of silver say of a season that is not true; the first of each kind."""
    boards = {board.hex for board in truth.season.boards}
    of = {
        name: [row for row in some if row.get("recorder", row["board"]) in boards]
        for name, some in rows.items()
    }
    for name in RECORDS:
        yield from differences(keyed(of[name]), keyed(truth.rows(name)))[:1]
    yield from islice(truth.wrong_times([*of["messages"], *of["events"]], of["anchors"]), 1)
    yield from islice(truth.wrong_losses(of["losses"]), 1)


def killed(after: int) -> object:
    """A commit that does not come back the so manieth time."""
    commit, left = Lake.commit, [after]

    def committed(lake: Lake, *rest: object) -> None:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        commit(lake, *rest)  # type: ignore[arg-type]

    return committed


def plain(table: pa.Table) -> list[Row]:
    """Times in microseconds as `NAME_us`."""
    for i, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            us = table.column(i).cast(pa.int64())
            table = table.set_column(i, f"{field.name}_us", us)
    rows: list[Row] = table.to_pylist()
    return rows


def keyed(found: list[Row]) -> Rows:
    """By the columns that are the identity of a row."""
    names = ("recorder", "recorder_boot", "recorder_seq")
    made = {tuple(row.get(n, row.get(n.removeprefix("recorder_"), row["board"])) for n in names):
            row for row in found}  # fmt: skip
    assert len(made) == len(found), "an identity occurs twice"
    return made


def differences(found: Rows, right: Rows) -> list[str]:
    """In words; empty where the tables are equal in all columns that the truth has."""
    told = [f"missing: {right[key]}" for key in right.keys() - found.keys()]
    told += [f"too much: {found[key]}" for key in found.keys() - right.keys()]
    return told + [
        f"{key} {name}: {found[key].get(name)!r} is not {value!r}"
        for key in right.keys() & found.keys()
        for name, value in right[key].items()
        if found[key].get(name, "no column") != value
    ]
