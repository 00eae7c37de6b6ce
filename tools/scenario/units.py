"""Times and sizes as a scenario writes them: `"5 min"`, `"4 KB"`."""

import re
from collections.abc import Mapping
from typing import Any

from pydantic import BeforeValidator

_MS = {"ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_BYTES = {"B": 1, "KB": 1024, "MB": 1 << 20}


def time(least: str = "1 ms", most: str = "3650 d") -> BeforeValidator:
    """A time in this range, as milliseconds: a number of seconds, or a text with a unit."""
    bounds = _with_unit(least, _MS), _with_unit(most, _MS)
    expected = f'must be a time from {least} to {most}, as 90 or "90 s" (ms, s, min, h, d)'

    def parse(value: Any) -> int:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        ms = value * 1000 if is_number else _with_unit(value, _MS)
        if ms is None or not bounds[0] <= ms <= bounds[1]:
            raise ValueError(expected)
        whole: int = round(ms)
        return whole

    return BeforeValidator(parse)


def size(value: Any) -> Any:
    """A text with a unit as a number of bytes; any other value as it is."""
    found = _with_unit(value, _BYTES)
    return value if found is None else round(found)


def time_text(ms: int) -> str:
    """A time in its largest unit that needs no fraction."""
    for unit in ("d", "h", "min", "s"):
        if ms and not ms % _MS[unit]:
            return f"{ms // _MS[unit]} {unit}"
    return f"{ms} ms"


def _with_unit(value: Any, units: Mapping[str, int]) -> Any:
    pattern = rf"(\d+(?:\.\d+)?) ?({'|'.join(units)})"
    found = re.fullmatch(pattern, value.strip()) if isinstance(value, str) else None
    return float(found[1]) * units[found[2]] if found else None
