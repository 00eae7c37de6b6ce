"""Recognizes what a payload is: number, JSON, CBOR, text or bytes. The original is kept, too.

A number is a finite decimal number. JSON is an object or a list. CBOR is tried if the bytes are
not UTF-8: a payload that is exactly one map, list or tagged item. It becomes JSON, with byte
strings in hexadecimal.

Which bytes a payload has is found for all at once; only JSON, CBOR and odd text are looked at
one by one.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from decimal import Decimal
from io import BytesIO
from typing import Any

import cbor2
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_NUMBER = re.compile(r"[ \t\r\n]*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?[ \t\r\n]*", re.ASCII)
_KINDS = pa.array(["empty", "number", "json", "text", "cbor", "bytes"])
EMPTY, NUMBER, JSON, TEXT, CBOR, BYTES = range(6)


def _class(some: Iterable[int]) -> Any:
    table = np.zeros(256, bool)
    table[list(some)] = True
    return table


_CONTROLS = _class({*range(32), 127} - {9, 10, 13})
_HIGH = _class(range(128, 256))
_NUMERIC = _class(b"+-.0123456789eE \t\r\n")
_DIGITS = _class(b"0123456789")
_SPACES = " \t\r\n"


class _Bytes:
    """Binary values, and how many bytes of a class each has."""

    def __init__(self, values: pa.Array) -> None:
        offsets = np.frombuffer(values.buffers()[1], np.int32, len(values) + 1, 4 * values.offset)
        begin = int(offsets[0]) if len(offsets) else 0
        end = int(offsets[-1]) if len(offsets) else 0
        data = values.buffers()[2]
        self._data = np.frombuffer(data, np.uint8, end - begin, begin) if end > begin else None
        self._bounds = offsets - begin
        self.lengths = np.diff(offsets)

    def count(self, table: Any) -> Any:
        if self._data is None:
            return np.zeros(len(self.lengths), np.int32)
        so_far = np.zeros(len(self._data) + 1, np.int32)
        np.cumsum(table[self._data], out=so_far[1:])
        return so_far[self._bounds[1:]] - so_far[self._bounds[:-1]]


def typed(values: pa.Array) -> dict[str, pa.Array]:
    """`kind`, and `number`, `json` or `text` of binary values without nulls."""
    found = _Bytes(values)
    count = len(values)
    high = found.count(_HIGH) > 0
    is_text = found.count(_CONTROLS) == 0
    for i in np.flatnonzero(high & is_text).tolist():
        is_text[i] = _is_utf8(values[i].as_py())
    numeric = (found.count(_NUMERIC) == found.lengths) & (found.count(_DIGITS) > 0)
    places = np.flatnonzero(numeric)
    numbers = np.full(count, math.nan)
    numbers[places] = _numbers(values.take(pa.array(places)).cast(pa.string()))
    is_number = np.isfinite(numbers)
    kind = np.where(found.lengths == 0, EMPTY, np.where(is_text, TEXT, BYTES)).astype(np.int8)
    kind[is_number] = NUMBER
    texts: dict[int, str] = {}
    odd = _doubtful(values, np.flatnonzero((kind == TEXT) | (kind == BYTES)), is_text)
    for i, payload in zip(odd, values.take(pa.array(odd, pa.int64())).to_pylist(), strict=True):
        if text := json_text(payload):
            texts[i], kind[i] = text, JSON if is_text[i] else CBOR
        elif text := cbor_text(payload):
            texts[i], kind[i] = text, CBOR
    whole = kind == TEXT
    return {
        "kind": _KINDS.take(pa.array(kind)),
        "number": pa.array(numbers, mask=~is_number),
        "json": _placed(list(texts), list(texts.values()), count),
        "text": _placed(
            np.flatnonzero(whole), values.filter(pa.array(whole)).cast(pa.string()), count
        ),
    }


def _doubtful(values: pa.Array, places: Any, is_text: Any) -> list[int]:
    """Of these places those that may be JSON or CBOR by how they begin."""
    some = values.take(pa.array(places))
    opens = pc.match_substring_regex(some, r"^[ \t\r\n]*[\[{]").to_numpy(zero_copy_only=False)
    found: list[int] = places[opens | ~is_text[places]].tolist()
    return found


def _placed(places: Any, values: Any, count: int) -> pa.Array:
    """Texts at these places of an array that is null elsewhere."""
    which = np.full(count, -1, np.int64)
    which[places] = np.arange(len(places))
    some = values if isinstance(values, pa.Array) else pa.array(values, pa.string())
    return some.take(pa.array(which, mask=which < 0))


def _numbers(texts: pa.Array) -> Any:
    """NaN for those that are none."""
    try:
        return pc.utf8_trim(texts, _SPACES).cast(pa.float64()).to_numpy()
    except pa.ArrowInvalid:
        found = [float(t) if _NUMBER.fullmatch(t) else math.nan for t in texts.to_pylist()]
        return np.array(found, np.float64)


def _is_utf8(payload: bytes) -> bool:
    try:
        payload.decode()
    except UnicodeDecodeError:
        return False
    return True


def _refuse(name: str) -> None:
    raise ValueError(name)


_decoder: Any = json.JSONDecoder(parse_constant=_refuse)
_scan = _decoder.scan_once
_encode = json.JSONEncoder(allow_nan=False).encode


def json_text(payload: bytes) -> str | None:
    """The payload itself, if it is an object or a list as RFC 8259 has them."""
    try:
        text = payload.decode()
        value, end = _scan(text.lstrip(_SPACES) if text[:1] in _SPACES else text, 0)
    except (ValueError, StopIteration, RecursionError):
        return None
    is_whole = end == len(text) or not text.lstrip(_SPACES)[end:].strip(_SPACES)
    return text if is_whole and isinstance(value, dict | list) else None


def cbor_text(payload: bytes) -> str | None:
    """The one map, list or tagged item in these bytes as JSON."""
    if not payload or payload[0] >> 5 not in (4, 5, 6):
        return None
    stream = BytesIO(payload)
    try:
        value = cbor2.CBORDecoder(stream, max_depth=32).decode()
        if stream.read(1):
            return None
        return _json(value)
    except (cbor2.CBORDecodeError, ValueError, TypeError, OverflowError, RecursionError):
        return None


def _json(value: Any) -> str:
    try:
        return _encode(value)  # as most are
    except (TypeError, ValueError):
        return _encode(_plain(value))


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
