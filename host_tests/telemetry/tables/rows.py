"""Tables as plain rows, for comparison with the truth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from slotmq_tools.telemetry import bronze, build
from slotmq_tools.telemetry.engine import Engine
from slotmq_tools.telemetry.lake import Lake
from slotmq_tools.telemetry.schemas import GOLD, SILVER
from slotmq_tools.telemetry.season import greenhouse

from .campaign import Campaign
from .gold_truth import KEYS

Row = dict[str, Any]
Rows = dict[tuple[Any, ...], Row]
HERE = Engine(lambda: pytest.fail("a session of Spark"))


def greenhouse_tables(folder: Path) -> Lake:
    """The tables of the demo's greenhouse, in a folder in `folder`."""
    harvest = greenhouse.grow(folder / "harvest")
    lake = Lake(folder / "tables").made()
    (lake.folder / "boards.toml").write_text(greenhouse.TOML)
    bronze.ingest(HERE, harvest.folder, lake)
    build.build_silver(HERE, lake)
    build.build_gold(HERE, lake)
    return lake


@dataclass
class Made:
    """A campaign and its tables."""

    campaign: Campaign
    lake: Lake

    def ingest(self, engine: Engine = HERE) -> tuple[int, int]:
        """Make what is new; how many boards had something new, in silver and in gold."""
        bronze.ingest(engine, self.campaign.folder, self.lake.made())
        return build.build_silver(engine, self.lake), build.build_gold(engine, self.lake)

    def rows(self, name: str) -> list[Row]:
        return plain(self.lake.rows((SILVER | GOLD)[name]))

    def wrong(self, name: str) -> list[str]:
        """The differences of a table of silver or gold from the truth."""
        names = KEYS.get(name, ())
        return differences(keyed(self.rows(name), names), keyed(self.campaign.all(name), names))


def plain(table: pa.Table) -> list[Row]:
    """Times in microseconds as `NAME_us`."""
    for i, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            us = table.column(i).cast(pa.int64())
            table = table.set_column(i, f"{field.name}_us", us)
    rows: list[Row] = table.to_pylist()
    return rows


def keyed(found: list[Row], names: Sequence[str] = ()) -> Rows:
    """By the columns that are the identity of a row."""
    if not names:
        names = ("board", "boot", "first_seq" if found and "first_seq" in found[0] else "seq")
    if found and "recorder" in found[0]:
        names = ("recorder", "recorder_boot", "recorder_seq")
    made = {tuple(row[name] for name in names): row for row in found}
    assert len(made) == len(found), "an identity occurs twice"
    return made


def same(one: Any, other: Any) -> bool:
    """Numbers that were computed may differ where doubles are rounded."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-7, abs_tol=1e-9)
    return bool(one == other)


def differences(found: Rows, right: Rows) -> list[str]:
    """In words, the first few of them; empty where the tables are equal."""
    told = [f"missing: {right[key]}" for key in right.keys() - found.keys()]
    told += [f"too much: {found[key]}" for key in found.keys() - right.keys()]
    for key in right.keys() & found.keys():
        columns = right[key].keys() | found[key].keys()
        told += [
            f"{key} {name}: {found[key].get(name)!r} is not {right[key].get(name)!r}"
            for name in columns
            if not same(found[key].get(name, "no column"), right[key].get(name, "no column"))
        ]
    return sorted(told)[:10]
