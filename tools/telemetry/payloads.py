"""Recognizes what a payload is: number, JSON, CBOR, text or bytes. The original is kept, too.

A number is a finite decimal number. JSON is an object or a list. CBOR is tried if the bytes are
not UTF-8: a payload that is exactly one map, list or tagged item. It becomes JSON, with byte
strings in hexadecimal.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from io import BytesIO
from typing import Any

import cbor2
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

_arrow_udf: Any = f.arrow_udf  # type: ignore[attr-defined,unused-ignore]
_NUMBER = r"^\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*$"
_CONTROLS = r"[\x00-\x08\x0B\x0C\x0E-\x1F\x7F]"


def typed(rows: DataFrame) -> DataFrame:
    """`kind`, and `number`, `json` or `text` from `payload`."""
    text = f.expr("cast(payload as string)")
    readable = f.is_valid_utf8(text) & ~f.rlike(text, f.lit(_CONTROLS))
    number = f.when(f.rlike(text, f.lit(_NUMBER)), text.try_cast("double"))
    is_number = readable & number.isNotNull() & (f.abs(number) < f.lit(math.inf))
    doubtful = ~readable | f.rlike(text, f.lit(r"^\s*[\[{]"))
    kind = (
        f.when(f.length("payload") == 0, "empty")
        .when(is_number, "number")
        .when(readable & f.col("_json").isNotNull(), "json")
        .when(readable, "text")
        .when(f.col("_json").isNotNull(), "cbor")
        .otherwise("bytes")
    )
    return (
        rows.withColumn("_json", _arrow_udf(as_json, "string")(f.when(doubtful, f.col("payload"))))
        .withColumn("kind", kind)
        .withColumn("number", f.when(f.col("kind") == "number", number))
        .withColumn("json", f.col("_json"))
        .withColumn("text", f.when(f.col("kind") == "text", text))
    )


def as_json(payloads: pa.Array) -> pa.Array:
    """The JSON text of each payload that is JSON or CBOR, for a batch."""
    if payloads.null_count == len(payloads):
        return pa.nulls(len(payloads), pa.string())
    return pa.array([p and (json_text(p) or cbor_text(p)) for p in payloads.to_pylist()])


def json_text(payload: bytes) -> str | None:
    """The payload itself, if it is an object or a list as RFC 8259 has them."""
    try:
        text = payload.decode()
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return text if isinstance(value, dict | list) else None


def _refuse(name: str) -> None:
    raise ValueError(name)


def cbor_text(payload: bytes) -> str | None:
    """The one map, list or tagged item in these bytes as JSON."""
    if payload[0] >> 5 not in (4, 5, 6):
        return None
    stream = BytesIO(payload)
    try:
        value = cbor2.CBORDecoder(stream, max_depth=32).decode()
        if stream.read(1):
            return None
        return json.dumps(_plain(value), allow_nan=False)
    except (cbor2.CBORDecodeError, ValueError, TypeError, OverflowError, RecursionError):
        return None


def _plain(value: Any) -> Any:
    """A decoded value in JSON's own types."""
    if isinstance(value, Mapping):
        return {_key(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(each) for each in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, cbor2.CBORTag):
        return _plain(value.value)
    if isinstance(value, date | datetime):
        return value.isoformat()
    return float(value) if isinstance(value, Decimal) else str(value)


def _key(key: Any) -> str:
    return key if isinstance(key, str) else json.dumps(_plain(key))
