"""SQL that makes a view of each table, for DuckDB and for Spark.

A view is of the files that the table has now, or, with Delta's own reader, of the table as it is
when it is read. A table without files has a view without rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from .lake import Lake
from .schemas import ALL, Table

_TYPES = {  # of DuckDB and of Spark
    "string": ("varchar", "string"),
    "int64": ("bigint", "bigint"),
    "int32": ("integer", "int"),
    "double": ("double", "double"),
    "bool": ("boolean", "boolean"),
    "binary": ("blob", "binary"),
    "timestamp[us, tz=UTC]": ("timestamptz", "timestamp"),
}
_OF_DELTA = {
    "duckdb": "create or replace view {} as select * from delta_scan({});",
    "spark": "create or replace temporary view {} using delta options (path {});",
}


def statements(lake: Lake, dialect: str, *, by_delta: bool) -> Iterator[str]:
    """One for each table; `dialect` is duckdb or spark."""
    of_files = {"duckdb": _duckdb, "spark": _spark}[dialect]
    for table in ALL:
        place = f"{lake.folder}/{table.name}"
        if not by_delta:
            yield of_files(table, place, sorted(lake.files(table)))
        elif lake.open(table) is not None:
            yield _OF_DELTA[dialect].format(_name(table), _quoted(place))


def _name(table: Table) -> str:
    return table.name.replace("/", "_")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _types(kind: pa.DataType) -> tuple[str, str]:
    if not pa.types.is_list(kind):
        return _TYPES[str(kind)]
    duckdb, spark = _TYPES[str(kind.value_type)]
    return f"{duckdb}[]", f"array<{spark}>"


def _duckdb(table: Table, place: str, files: Sequence[str]) -> str:
    head = f"create or replace view {_name(table)} as select"
    if not files:
        columns = (f'null::{_types(f.type)[0]} as "{f.name}"' for f in table.schema)
        return f"{head} {', '.join(columns)} where false;"
    listed = ",\n  ".join(_quoted(f"{place}/{file}") for file in files)
    columns = (f'"{field.name}"' for field in table.schema)
    return (
        f"{head} {', '.join(columns)} from read_parquet([\n  {listed}\n],"
        " hive_partitioning = true, hive_types_autocast = false);"
    )


def _spark(table: Table, place: str, files: Sequence[str]) -> str:
    columns = [(f.name, _types(f.type)[1]) for f in table.schema]
    head = f"create or replace temporary view {_name(table)}"
    if not files:
        nulls = ", ".join(f"cast(null as {kind}) as `{name}`" for name, kind in columns)
        return f"{head} as select {nulls} where false;"
    typed = ", ".join(f"`{name}` {kind}" for name, kind in columns)
    listed = ",".join(files)  # one path is all that there may be
    path = f"{place}/{{{listed}}}" if len(files) > 1 else f"{place}/{files[0]}"
    return (
        f"{head} ({typed}) using parquet options (basePath {_quoted(place)},"
        f" path {_quoted(path)});"
    )
