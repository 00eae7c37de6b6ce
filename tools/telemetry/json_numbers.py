"""The numbers in JSON payloads: the fields of an object, on its first level; in quotes, too."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

_PIECE = 2000  # objects that are parsed together
_is_number = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII).fullmatch
Found = tuple[str, Any, Any]  # a field, places of payloads, values


def fields(texts: Sequence[str]) -> Iterator[Found]:
    """The numbers of JSON objects that a double can hold; places count from the first."""
    found: dict[str, tuple[list[int], list[Any]]] = {}
    for start in range(0, len(texts), _PIECE):
        piece = json.loads(f"[{','.join(texts[start : start + _PIECE])}]")
        for place, one in enumerate(piece, start):
            for name, value in one.items():
                kind = type(value)
                if kind is float or kind is int or (kind is str and _is_number(value)):
                    places, values = found.setdefault(name, ([], []))
                    places.append(place)
                    values.append(value)
    for name, (places, values) in found.items():
        numbers = np.array([_float(value) for value in values])
        finite = np.isfinite(numbers)
        yield name, np.array(places)[finite], numbers[finite]


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf
