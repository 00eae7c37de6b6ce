"""Reads MANIFEST.jsonl of a harvest folder, and divides its bundles into the work of tasks.

A line is written when its bundle is safe, so a bundle without a line does not count. The number of
a line is the offset of the stream that Spark reads. (harvest/manifest.py writes the file.)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ToolError

NAME = "MANIFEST.jsonl"
TASK_BYTES = 4 << 20
Key = tuple[str, int, int]


@dataclass(frozen=True)
class Bundle:
    """A line of the manifest."""

    line: int
    path: str  # from the folder
    size: int
    segment_size: int
    harvested_ms: int


@dataclass(frozen=True)
class Part:
    """Whole segments of a bundle, the piece of work of a task."""

    bundle: Bundle
    start: int
    end: int


def count(folder: Path) -> int:
    """How many lines there are."""
    return len(_lines(folder))


def read(folder: Path, first: int = 0, last: int | None = None) -> list[Bundle]:
    """The bundles of the lines from `first` up to, not including, `last`."""
    lines = _lines(folder)[first:last]
    return [_bundle(folder, first + i, text) for i, text in enumerate(lines)]


def segments(folder: Path) -> set[Key]:
    """Board, boot and number of all segments that bundles have."""
    told = (json.loads(line).get("segments", ()) for line in _lines(folder))
    return {(board, boot, number) for some in told for board, boot, number, *_ in some}


def _lines(folder: Path) -> list[str]:
    """The whole lines; one without its end is still being written."""
    try:
        text = (folder / NAME).read_text()
    except FileNotFoundError:
        raise ToolError(f"{folder} is not a harvest folder: it has no {NAME}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ToolError(f"{folder / NAME} cannot be read: {error}") from None
    return text.split("\n")[:-1]


def _bundle(folder: Path, line: int, text: str) -> Bundle:
    where = f"{folder / NAME}, line {line + 1}"
    try:
        told: dict[str, Any] = json.loads(text)
        bundle = Bundle(
            line=line,
            path=str(told["path"]),
            size=int(told["size"]),
            segment_size=int(told["segment_size"]),
            harvested_ms=int(float(told["harvested"]) * 1000),
        )
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise ToolError(f"{where}: not a manifest line: {error!r}") from None
    if bundle.segment_size < 256 or bundle.size < 0:
        raise ToolError(f"{where}: invalid sizes")
    if Path(bundle.path).is_absolute() or ".." in Path(bundle.path).parts:
        raise ToolError(f"{where}: {bundle.path} lies outside the folder")
    return bundle


def mark(bundles: Sequence[Bundle]) -> str:
    """What tells these lines from another folder's; it stays when they are compacted."""
    told = "".join(f"{each.segment_size} {each.harvested_ms}\n" for each in bundles)
    return hashlib.sha256(told.encode()).hexdigest()


def parts(bundles: Sequence[Bundle], limit: int = TASK_BYTES) -> Iterator[list[Part]]:
    """What each task reads: large bundles are cut between segments, small ones go together.

    A line without a path has had its bundle put into a larger one, which has its own line.
    """
    waiting: list[Part] = []
    total = 0
    for bundle in (each for each in bundles if each.path):
        step = max(1, limit // bundle.segment_size) * bundle.segment_size
        for start in range(0, max(bundle.size, 1), step):
            part = Part(bundle, start, min(start + step, bundle.size))
            if waiting and total + part.end - part.start > limit:
                yield waiting
                waiting, total = [], 0
            waiting.append(part)
            total += part.end - part.start
    if waiting:
        yield waiting
