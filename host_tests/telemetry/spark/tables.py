"""Tables as plain rows, for comparison with the truth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import TimestampType

Row = dict[str, Any]
Rows = dict[tuple[Any, ...], Row]


def plain(table: DataFrame) -> list[Row]:
    """Times in microseconds as `NAME_us`, and without the day they follow from."""
    for column in table.schema:
        if isinstance(column.dataType, TimestampType):
            table = table.withColumn(f"{column.name}_us", f.unix_micros(column.name))
            table = table.drop(column.name)
    found = [row.asDict() for row in table.drop("day").collect()]
    return [
        {k: bytes(v) if isinstance(v, bytearray) else v for k, v in row.items()} for row in found
    ]


def rows(table: DataFrame) -> Rows:
    """By identity."""
    return keyed(plain(table))


def keyed(found: list[Row], names: Sequence[str] = ()) -> Rows:
    """By the columns that are the identity of a row."""
    if not names:
        names = ("board", "boot", "first_seq" if found and "first_seq" in found[0] else "seq")
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
