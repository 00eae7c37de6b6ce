"""The manifest of a harvest folder here or in an object store (harvest/manifest.py reads it), and
its bundles divided into the work of tasks."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from slotmq_tools.errors import ToolError

from .folder import Folder
from .harvest import manifest
from .harvest.manifest import NAME, Line, Manifest, Segment

TASK_BYTES = 4 << 20


class Part(NamedTuple):
    """Whole segments of a bundle, the piece of work of a task."""

    path: str  # from the folder
    line: int
    segment_size: int
    harvested_ms: int
    start: int
    end: int
    sha256: str  # of all of the bundle
    segments: Sequence[Segment]  # what they were when they were harvested


@contextmanager
def opened(where: Folder | Path) -> Iterator[Manifest]:
    """The manifest, to read only; of an object store a copy of it."""
    folder = Folder(where)
    with tempfile.TemporaryDirectory(prefix="slotmq-") as here:
        file = Path(here if folder.is_remote else folder, NAME)
        try:
            data = folder.read(NAME) if folder.is_remote else None
        except OSError as error:
            raise ToolError(f"{folder}: {' '.join(str(error).split())}") from None
        if data is not None:
            file.write_bytes(data)
        if not file.exists():
            raise ToolError(f"{folder} is not a harvest folder: it has no {NAME}")
        with manifest.opened(folder.url, file) as found:
            yield found


def parts(lines: Sequence[Line], limit: int = TASK_BYTES) -> Iterator[list[Part]]:
    """What each task reads: large bundles are cut between segments, small ones go together.

    A line without a path has had its bundle put into a larger one, which has its own line.
    """
    waiting: list[Part] = []
    total = 0
    for line in (each for each in lines if each.path):
        size, about = line.segment_size, (line.segment_size, int(line.harvested * 1000))
        step = max(1, limit // size) * size
        for start in range(0, max(line.size, 1), step):
            end = min(start + step, line.size)
            some = line.segments[start // size : -(-end // size)]
            if waiting and total + end - start > limit:
                yield waiting
                waiting, total = [], 0
            waiting.append(Part(line.path, line.line, *about, start, end, line.sha256, some))
            total += end - start
    if waiting:
        yield waiting
