"""What the values of a scenario may be: each kind takes a value as TOML has it and answers
with ours, or raises ValueError with what it expected.
"""

import re
from collections.abc import Callable
from typing import Any

Kind = Callable[[Any], Any]

_MS = {"ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_BYTES = {"B": 1, "KB": 1024, "MB": 1 << 20}
_WITH_UNIT = re.compile(r"(\d+(?:\.\d+)?) ?([A-Za-z]+)")


def span(least_ms: int = 1, most: str = "3650 d") -> Kind:
    """A time, as milliseconds: a number of seconds, or a text with a unit."""
    most_ms = _with_unit(most, _MS) or 0
    expected = f'a time from {shown(least_ms)} to {most}, as 90 or "90 s" (ms, s, min, h, d)'

    def kind(value: Any) -> int:
        found = _seconds(value) if _is_number(value) else _with_unit(value, _MS)
        if found is None or not least_ms <= found <= most_ms:
            raise ValueError(expected)
        return found

    return kind


def size(least: int, most: int, step: int = 1) -> Kind:
    """A number of bytes: a whole number, or a text with a unit; a multiple of the step."""
    multiple = f" a multiple of {step}," if step > 1 else ""
    expected = f'bytes from {least:,} to {most:,},{multiple} as {max(least, 512)} or "4 KB"'

    def kind(value: Any) -> int:
        found = value if _is_whole(value) else _with_unit(value, _BYTES)
        if found is None or not least <= found <= most or found % step:
            raise ValueError(expected)
        return int(found)

    return kind


def whole(least: int, most: int) -> Kind:
    """A whole number."""

    def kind(value: Any) -> int:
        if not _is_whole(value) or not least <= value <= most:
            raise ValueError(f"a whole number from {least:,} to {most:,}")
        return int(value)

    return kind


def number(least: float, most: float) -> Kind:
    """A number, perhaps with a fraction."""

    def kind(value: Any) -> float:
        if not _is_number(value) or not least <= value <= most:
            raise ValueError(f"a number from {least:g} to {most:g}")
        return float(value)

    return kind


def flag(value: Any) -> bool:
    """true or false."""
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def one_of(*choices: str) -> Kind:
    """One of these texts."""

    def kind(value: Any) -> str:
        if not isinstance(value, str) or value not in choices:
            raise ValueError("one of " + ", ".join(f'"{choice}"' for choice in choices))
        return value

    return kind


def text(value: Any) -> str:
    """A text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError("a text")
    return value


def word(value: Any) -> str:
    """A name: letters, digits, dashes."""
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9_-]{1,40}", value):
        raise ValueError("a name of letters, digits, - and _, at most 40")
    return value


def topic(value: Any) -> str:
    """A topic name; {n} stands for the client's number."""
    found = _levels(value)
    if not found or found[0].startswith("$") or set("+#") & set(value):
        raise ValueError("a topic name, without + and #, and no $ first; {n} is a number")
    return str(value)


def filters(value: Any) -> tuple[str, ...]:
    """Topic filters; {n} stands for the client's number."""
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not all(_is_filter(each) for each in found):
        raise ValueError('topic filters, as ["home/+/temperature", "alarm/#"]')
    return tuple(found)


def anything(value: Any) -> Any:
    """What is checked later, by those who know it."""
    return value


def shown(ms: int) -> str:
    """A time as one would write it."""
    for unit in ("d", "h", "min", "s"):
        if ms and not ms % _MS[unit]:
            return f"{ms // _MS[unit]} {unit}"
    return f"{ms} ms"


def _levels(value: Any) -> list[str]:
    good = isinstance(value, str) and value and "\0" not in value
    return value.split("/") if good else []


def _is_filter(value: Any) -> bool:
    levels = _levels(value)
    if not levels or (levels[0] == "$share" and len(levels) < 3):
        return False
    alone = all(level in ("+", "#") or not set("+#") & set(level) for level in levels)
    return alone and "#" not in levels[:-1]


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return _is_whole(value) or (isinstance(value, float) and abs(value) < 1e15)


def _seconds(value: float) -> int:
    return round(value * 1000)


def _with_unit(value: Any, units: dict[str, int]) -> int | None:
    found = _WITH_UNIT.fullmatch(value.strip()) if isinstance(value, str) else None
    if not found or found[2] not in units:
        return None
    return round(float(found[1]) * units[found[2]])
