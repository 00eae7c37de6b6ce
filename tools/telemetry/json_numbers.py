"""The numbers in JSON payloads: the fields of an object, on its first level; in quotes, too.

Arrow parses flat objects together. It refuses those whose fields differ in type, or that have a
name twice; they are parsed one by one. (Of lists with nulls in objects it makes wrong arrays.)
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json

_PIECE = 2000  # payloads that are parsed together: no more fields than so many times theirs
_FLAT = r"^[^\[{]*\{[^\[{]*$"
_NUMBER = r"^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$"
_is_number = re.compile(_NUMBER, re.ASCII).match
Found = tuple[str, Any, Any]  # a field, places of payloads, values


def fields(texts: pa.Array) -> Iterator[Found]:
    """The numbers of JSON objects; places count from the first."""
    flat = pc.match_substring_regex(texts, _FLAT).to_numpy(zero_copy_only=False)
    whole, nested = np.flatnonzero(flat), np.flatnonzero(~flat)
    for start in range(0, len(whole), _PIECE):
        places = whole[start : start + _PIECE]
        piece = texts.take(pa.array(places))
        table = _parsed(piece.to_pylist())
        yield from _finite(_alone(piece) if table is None else _of_columns(table), places)
    yield from _finite(_alone(texts.take(pa.array(nested))), nested)


def _finite(found: Iterable[Found], places: Any) -> Iterator[Found]:
    for name, some, values in found:
        finite = np.isfinite(values)
        yield name, places[some[finite]], values[finite]


def _parsed(texts: list[str]) -> pa.Table | None:
    """A column for each field, a row for each text; None: Arrow refuses them."""
    data = "\n".join(texts).encode()
    options = arrow_json.ReadOptions(use_threads=False, block_size=len(data) + 1)
    try:
        table = arrow_json.read_json(pa.BufferReader(data), read_options=options)
    except pa.ArrowInvalid:
        return None
    return table if table.num_rows == len(texts) else None


def _of_columns(table: pa.Table) -> Iterator[Found]:
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = column.type
        is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
        if not is_number and not pa.types.is_string(kind):
            continue
        places = np.flatnonzero(column.is_valid().to_numpy())
        values = column.drop_null().combine_chunks()
        if is_number:
            numbers = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        else:
            like = pc.match_substring_regex(values, _NUMBER)
            places = places[like.to_numpy(zero_copy_only=False)]
            numbers = np.array([float(text) for text in values.filter(like).to_pylist()])
        yield name, places, numbers


def _alone(texts: pa.Array) -> Iterator[Found]:
    found: dict[str, tuple[list[int], list[float]]] = {}
    for i, text in enumerate(texts.to_pylist()):
        for name, value in json.loads(text).items():
            places, values = found.setdefault(name, ([], []))
            places.append(i)
            values.append(_float(value))
    for name, (places, values) in found.items():
        yield name, np.array(places, np.int64), np.array(values, np.float64)


def _float(value: Any) -> float:
    """NaN for what is none, or what no double can hold."""
    is_one = isinstance(value, int | float) and not isinstance(value, bool)
    if is_one or (isinstance(value, str) and _is_number(value)):
        try:
            return float(value)
        except OverflowError:
            pass
    return math.nan
