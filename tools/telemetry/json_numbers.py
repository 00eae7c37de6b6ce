"""The numbers in JSON payloads: the fields of an object, on its first level; in quotes, too.

Arrow parses payloads together if they are flat and have the same fields, as those of a topic have
as a rule. It cannot be trusted with objects that have a name twice, so others are parsed alone.
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
_KINDS = 8  # of payloads with the same fields, in a piece; what is left is parsed alone
_FEW = 4
_NUMBER = r"^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$"
_is_number = re.compile(_NUMBER, re.ASCII).match
Found = tuple[str, Any, Any]  # a field, places of payloads, values


def fields(texts: pa.Array) -> Iterator[Found]:
    """The numbers of JSON objects; places count from the first."""
    for start in range(0, len(texts), _PIECE):
        piece = texts.slice(start, _PIECE)
        left = np.arange(len(piece))
        for _ in range(_KINDS):
            if not len(left):
                break
            there = piece.take(pa.array(left))
            alike = _like_first(there)
            yield from _placed(there.filter(pa.array(alike)), left[alike] + start)
            left = left[~alike]
        yield from _at(_alone(piece.take(pa.array(left))), left + start)


def _placed(texts: pa.Array, places: Any) -> Iterator[Found]:
    try:
        found = list(_together(texts))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        found = list(_alone(texts))
    return _at(found, places)


def _at(found: Iterable[Found], places: Any) -> Iterator[Found]:
    return ((name, places[some], values) for name, some, values in found)


def _like_first(texts: pa.Array) -> Any:
    """Which are flat objects that have the fields of the first, each of them once; or only the
    first itself."""
    names = json.loads(texts[0].as_py())
    alike = pc.equal(pc.count_substring(texts, ":"), len(names))
    for name in names:
        named = pc.match_substring(texts, f"{json.dumps(name, ensure_ascii=False)}:")
        alike = pc.and_(alike, named)
    alike = pc.and_not(alike, pc.match_substring_regex(texts, r"[\r\n]"))
    found = alike.to_numpy(zero_copy_only=False)
    if not found[0]:
        found = np.arange(len(texts)) == 0
    return found


def _together(texts: pa.Array) -> Iterator[Found]:
    if len(texts) < _FEW:
        yield from _alone(texts)
        return
    data = "\n".join(texts.to_pylist()).encode()
    options = arrow_json.ReadOptions(use_threads=False, block_size=len(data) + 1)
    table = arrow_json.read_json(pa.BufferReader(data), read_options=options)
    if table.num_rows != len(texts):
        raise pa.ArrowInvalid("not a row for each")
    for name, column in zip(table.column_names, table.columns, strict=True):
        places = np.flatnonzero(column.is_valid().to_numpy())
        values = column.drop_null().combine_chunks()
        if pa.types.is_string(values.type):
            like = pc.match_substring_regex(values, _NUMBER)
            places = places[like.to_numpy(zero_copy_only=False)]
            values = pa.array(
                [float(text) for text in values.filter(like).to_pylist()], pa.float64()
            )
        elif not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
            continue
        numbers = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        finite = np.isfinite(numbers)
        yield name, places[finite], numbers[finite]


def _alone(texts: pa.Array) -> Iterator[Found]:
    found: dict[str, tuple[list[int], list[float]]] = {}
    for i, text in enumerate(texts.to_pylist()):
        for name, value in json.loads(text).items():
            number = _float(value)
            if math.isfinite(number):
                places, values = found.setdefault(name, ([], []))
                places.append(i)
                values.append(number)
    for name, (places, values) in found.items():
        yield name, np.array(places, np.int64), np.array(values, np.float64)


def _float(value: Any) -> float:
    """NaN for what is none, or what no double can hold."""
    is_one = isinstance(value, int | float) and not isinstance(value, bool)
    if is_one or (isinstance(value, str) and _is_number(value)):
        try:
            return float(value)
        except OverflowError:
            return math.nan
    return math.nan
