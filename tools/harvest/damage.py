"""Damaged bundles: missing on this disk, or not what their manifest line says.

The segments of a damaged bundle count as missing, so a harvest fetches them again. Existence and
size are checked for all bundles; the SHA-256 is checked only for bundles that are used.
"""

import hashlib
from collections.abc import Container, Iterator
from pathlib import Path

from ..errors import ToolError
from .manifest import Copy, Key, Line, Manifest, fuller


class Damage:
    """The damaged bundles of a folder, and the copies of segments in sound ones."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._damaged: set[str] = set()  # paths of bundles
        self._sound: set[str] = set()
        self._found: dict[str, tuple[Line, str]] = {}  # what is wrong with those of value
        for line in manifest.lines():
            if line.path and (why := _wrong_size(manifest.folder / line.path, line.size)):
                self._damaged.add(line.path)
                self._found[line.path] = line, why
        for path in [path for path, (line, _) in self._found.items() if not self.lacking(line)]:
            del self._found[path]

    def copy(self, key: Key) -> Copy | None:
        """The fullest copy of a segment, of those that are not damaged."""
        return self._manifest.copies(key=key, without=self._damaged).get(key)

    def copies(self, board: str | None = None) -> dict[Key, Copy]:
        """The same of every segment, or of those of a board."""
        return self._manifest.copies(board, without=self._damaged)

    def is_sound(self, line: Line) -> bool:
        """Is a bundle what was harvested? It is read once."""
        if line.path not in self._sound and line.path not in self._damaged:
            try:
                check(self._manifest.folder, line)
                self._sound.add(line.path)
            except ToolError as error:
                self._damaged.add(line.path)
                self._found[line.path] = line, str(error).partition(f"{line.path}: ")[2]
        return line.path in self._sound

    def is_known(self, line: Line) -> bool:
        """Is it known to be damaged? Nothing is read for that."""
        return line.path in self._damaged

    def doubt(self, board: str, numbers: Container[int]) -> None:
        """Read what a harvest would build upon: the beginnings of segments that were growing."""
        while not all(
            self.is_sound(copy.line)
            for (_, _, number), copy in self.copies(board).items()
            if number in numbers and copy.grown is not None
        ):
            pass  # a copy that is less full takes the place of the damaged one

    def mended(self, path: str) -> None:
        """The same bundle was just written anew."""
        self._damaged.discard(path)
        self._sound.add(path)

    def lacking(self, line: Line) -> int:
        """How many segments of this bundle no sound one has as full."""
        (filled,) = self._manifest.filled([line])
        copies = [(each, self.copy(each.key)) for each in filled.segments]
        return sum(copy is None or fuller(one.last, one.grown, copy) for one, copy in copies)

    def is_replaced(self, line: Line) -> bool:
        """Is all that it had in sound bundles? They are read for that."""
        while not self.lacking(line):
            there = [copy.line for each in line.segments if (copy := self.copy(each.key))]
            if all(self.is_sound(each) for each in {each.path: each for each in there}.values()):
                return True
        return False

    def complaints(self) -> Iterator[tuple[str, int]]:
        """A text for each damaged bundle, and how many of its segments are still missing."""
        for path, (line, why) in sorted(self._found.items()):
            lacking, count = self.lacking(line), len(line.segments)
            here = f"{count - lacking} of its {count} segments are in other bundles"
            yield f"{self._manifest.folder / path}: {why}; {here}", lacking


def _wrong_size(path: Path, size: int) -> str:
    """What is wrong with existence or size of a file; empty if nothing is."""
    try:
        found = path.stat().st_size
    except FileNotFoundError:
        return "it is missing"
    except OSError as error:
        return f"it cannot be read ({error.strerror})"
    return f"it has {found:,} bytes instead of {size:,}" if found != size else ""


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
