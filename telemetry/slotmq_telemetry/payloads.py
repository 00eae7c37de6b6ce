"""Recognizes what a payload is: number, JSON, CBOR, text or bytes. The original is kept, too.

A number is a finite decimal number. JSON is an object or a list. CBOR is tried if the bytes are
not UTF-8: a payload that is exactly one map, list or tagged item. It becomes JSON, with byte
strings in hexadecimal.

Which bytes a payload has is found for all at once; only JSON, CBOR and odd text are looked at
one by one."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from io import BytesIO
from typing import Any

import cbor2
import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

_NUMBER = re.compile(r"[ \t\r\n]*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?[ \t\r\n]*", re.ASCII)
_KINDS = pa.array(["empty", "number", "json", "text", "cbor", "bytes"])
EMPTY, NUMBER, JSON, TEXT, CBOR, BYTES = range(6)
CBOR_FROM, CBOR_TO = 4 << 5, 7 << 5  # the first byte of a list, a map or a tagged item


_SPACES = " \t\r\n"
_CONTROL, _HIGH, _DIGIT, _OTHER = 1, 2, 4, 8  # kinds of bytes; OTHER: in no number


def _kind_of(byte: int) -> int:
    if byte >= 128:
        return _HIGH | _OTHER
    if byte == 127 or (byte < 32 and byte not in b"\t\r\n"):
        return _CONTROL | _OTHER
    if byte in b"0123456789":
        return _DIGIT
    return 0 if byte in b"+-.eE \t\r\n" else _OTHER


_KIND_OF = np.array([_kind_of(byte) for byte in range(256)], np.uint8)


def _contents(values: pa.Array) -> tuple[Any, Any, Any]:
    """Which kinds of bytes each binary value has, its length, and its first byte or 0."""
    offsets = np.frombuffer(values.buffers()[1], np.int32, len(values) + 1, 4 * values.offset)
    lengths = np.diff(offsets)
    found, first = np.zeros(len(values), np.uint8), np.zeros(len(values), np.uint8)
    some = np.flatnonzero(lengths)
    if len(some):
        begin, end = int(offsets[0]), int(offsets[-1])
        data = np.frombuffer(values.buffers()[2], np.uint8, end - begin, begin)
        begins = offsets[:-1][some] - begin
        first[some] = data[begins]
        found[some] = np.bitwise_or.reduceat(_KIND_OF[data], begins)
    return found, lengths, first


def typed(values: pa.Array) -> dict[str, pa.Array]:
    """`kind`, and `number`, `json` or `text` of binary values without nulls."""
    has, lengths, first = _contents(values)
    count = len(values)
    high = (has & _HIGH) > 0
    is_text = (has & _CONTROL) == 0
    for i in np.flatnonzero(high & is_text).tolist():
        is_text[i] = _is_utf8(values[i].as_py())
    numeric = (has & (_OTHER | _DIGIT)) == _DIGIT
    places = np.flatnonzero(numeric)
    numbers = np.full(count, math.nan)
    numbers[places] = _numbers(values.take(pa.array(places)).cast(pa.string()))
    is_number = np.isfinite(numbers)
    kind = np.where(lengths == 0, EMPTY, np.where(is_text, TEXT, BYTES)).astype(np.int8)
    kind[is_number] = NUMBER
    rest = np.flatnonzero((kind == TEXT) | (kind == BYTES))
    opens = pc.match_substring_regex(values.take(pa.array(rest)), r"^[ \t\r\n]*[\[{]")
    places = rest[opens.to_numpy(zero_copy_only=False)]
    found = [is_json(each) for each in values.take(pa.array(places)).to_pylist()]
    kind[places[found]] = JSON
    places = np.flatnonzero((first >= CBOR_FROM) & (first < CBOR_TO))
    texts = [cbor_text(payload) for payload in values.take(pa.array(places)).to_pylist()]
    places = places[[text is not None for text in texts]]
    kind[places] = CBOR
    both = pa.concat_arrays([
        values.filter(pa.array(kind == JSON)).cast(pa.string()),
        pa.array([text for text in texts if text is not None], pa.string()),
    ])  # fmt: skip
    whole = kind == TEXT
    return {
        "kind": _KINDS.take(pa.array(kind)),
        "number": pa.array(numbers, mask=~is_number),
        "json": _placed(np.append(np.flatnonzero(kind == JSON), places), both, count),
        "text": _placed(
            np.flatnonzero(whole), values.filter(pa.array(whole)).cast(pa.string()), count
        ),
    }


def _placed(places: Any, values: pa.Array, count: int) -> pa.Array:
    """Texts at these places of an array that is null elsewhere."""
    which = np.full(count, -1, np.int64)
    which[places] = np.arange(len(places))
    return values.take(pa.array(which, mask=which < 0))


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


_encode = json.JSONEncoder(allow_nan=False).encode


def is_json(payload: bytes | str) -> bool:
    """Whether it is an object or a list: of RFC 8259, with texts that are Unicode (no half of a
    surrogate pair) and numbers that a double can hold. Gold reads what this has let through."""
    try:
        return isinstance(orjson.loads(payload), dict | list)
    except ValueError:
        return False


def cbor_text(payload: bytes) -> str | None:
    """The one map, list or tagged item in these bytes as JSON."""
    if not CBOR_FROM <= payload[0] < CBOR_TO:
        return None
    stream = BytesIO(payload)
    try:
        value = cbor2.CBORDecoder(stream, max_depth=32).decode()
        if stream.read(1):
            return None
        text = _json(value)
    except Exception:  # of tags' own types (dates, fractions, patterns) nobody lists all errors
        return None
    return text if is_json(text) else None


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


_is_number = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII).fullmatch
Found = tuple[str, Any, Any]  # a field, places of payloads, values


def fields(texts: Sequence[str]) -> Iterator[Found]:
    """The numbers of JSON objects that a double can hold; places count from the first."""
    found: dict[str, tuple[list[int], list[Any]]] = {}
    for place, one in enumerate(map(orjson.loads, texts)):
        for name, value in one.items():
            kind = type(value)
            if kind is float or kind is int or (kind is str and _is_number(value)):
                places, values = found.setdefault(name, ([], []))
                places.append(place)
                values.append(value)
    for name, (places, values) in found.items():
        numbers = np.array([float(value) for value in values])
        finite = np.isfinite(numbers)
        yield name, np.array(places)[finite], numbers[finite]
