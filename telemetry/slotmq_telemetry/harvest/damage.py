"""Damaged bundles: missing on this disk, or not what their manifest line says.

The segments of a bundle that is missing or has another size count as missing, so that a harvest
fetches them again. The SHA-256 is checked before something is deleted: --delete, --compact.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from slotmq_tools.errors import ToolError

from .manifest import Copy, Key, Line, Manifest, fuller


class Damage:
    """The copies of segments of a folder in bundles that are there."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        there = [line for line in manifest.lines() if line.path]
        self._lost = {line.path: line for line in there if wrong_size(manifest.folder, line)}

    def copy(self, key: Key) -> Copy | None:
        """The fullest copy of a segment."""
        return self._manifest.copies(key=key, without=self._lost).get(key)

    def copies(self, board: str | None = None) -> dict[Key, Copy]:
        """The same of every segment, or of those of a board."""
        return self._manifest.copies(board, without=self._lost)

    def is_lost(self, line: Line) -> bool:
        return line.path in self._lost

    def written(self, line: Line) -> None:
        """A bundle; perhaps one that was lost."""
        self._lost.pop(line.path, None)

    def lacking(self, line: Line) -> int:
        """How many segments of this bundle no other one has as full."""
        (filled,) = self._manifest.filled([line])
        copies = [(each, self.copy(each.key)) for each in filled.segments]
        return sum(copy is None or fuller(one.last, one.grown, copy) for one, copy in copies)

    def complaints(self) -> Iterator[str]:
        """A text for each lost bundle of which segments are still missing."""
        for path, line in sorted(self._lost.items()):
            if lacking := self.lacking(line):
                why = wrong_size(self._manifest.folder, line)
                count = len(line.segments)
                here = f"{count - lacking} of its {count} segments are in other bundles"
                yield f"{self._manifest.folder / path}: {why}; {here}"


def wrong_size(folder: Path, line: Line) -> str:
    """What is wrong with existence or size of a bundle; empty if nothing is."""
    try:
        found = (folder / line.path).stat().st_size
    except FileNotFoundError:
        return "it is missing"
    except OSError as error:
        return f"it cannot be read ({error.strerror})"
    return f"it has {found:,} bytes instead of {line.size:,}" if found != line.size else ""


def check(folder: Path, line: Line) -> None:
    """ToolError if the SHA-256 of the bundle is not that of its line."""
    path = folder / line.path
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ToolError(f"{path}: {error.strerror}") from None
    if digest != line.sha256:
        raise ToolError(f"{path}: it was changed after the harvest (SHA-256 differs)")
