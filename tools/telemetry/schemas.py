"""The columns of every table, said explicitly: Spark infers none of them.

bronze and quarantine share the columns of the decoder (decode.py); the tables of silver and
gold are described in docs/telemetry.md.
"""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

_TYPES: dict[str, DataType] = {
    "long": LongType(),
    "int": IntegerType(),
    "double": DoubleType(),
    "string": StringType(),
    "strings": ArrayType(StringType()),
    "binary": BinaryType(),
    "bool": BooleanType(),
    "time": TimestampType(),
    "day": DateType(),
}


def _schema(text: str) -> StructType:
    """`name type` a column, separated by commas; a new object each, since add() changes one."""
    pairs = (column.split() for column in text.split(","))
    return StructType([StructField(name, _TYPES[kind]) for name, kind in pairs])


# What the Data Source gives: good rows have no `reason`.
FRAMES = _schema(
    "board string, boot long, segment long, seq long, ticks long, type int, flags int,"
    "client string, topic string, payload binary, crc long,"
    "line long, offset long, harvested_ms long, file string, reason string"
)
