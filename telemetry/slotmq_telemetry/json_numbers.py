"""The numbers in JSON payloads: the fields of an object, on its first level; in quotes, too."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import orjson

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
