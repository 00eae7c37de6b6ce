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
        self._cached: dict[Key, Copy] | None = None
        self._of = (0, 0)  # the lines that it is made of
        self._damaged: set[str] = set()  # paths of bundles
        self._sound: set[str] = set()
        self._found: dict[str, str] = {}  # what is wrong with those that had something of value
        self._lines = {line.path: line for line in manifest.lines if line.path}
        for path, line in self._lines.items():
            if why := _wrong_size(manifest.folder / path, line.size):
                self._damaged.add(path)
                self._found[path] = why
        copies = self.copies()
        for path in [path for path in self._found if not _lacking(self._lines[path], copies)]:
            del self._found[path]

    def copies(self) -> dict[Key, Copy]:
        """The fullest copy of every segment, of those that are not damaged."""
        lines = self._manifest.lines
        if self._cached is None or self._of != (id(lines), len(lines)):
            self._cached = self._manifest.copies(without=self._damaged)
            self._of = id(lines), len(lines)
        return self._cached

    def is_sound(self, line: Line) -> bool:
        """Is a bundle what was harvested? It is read once."""
        if line.path not in self._sound and line.path not in self._damaged:
            try:
                check(self._manifest.folder, line)
                self._sound.add(line.path)
            except ToolError as error:
                self._damaged.add(line.path)
                self._cached = None
                self._found[line.path] = str(error).partition(f"{line.path}: ")[2]
        return line.path in self._sound

    def is_known(self, line: Line) -> bool:
        """Is it known to be damaged? Nothing is read for that."""
        return line.path in self._damaged

    def doubt(self, board: str, numbers: Container[int]) -> None:
        """Read what a harvest would build upon: the beginnings of segments that were growing."""
        while not all(
            self.is_sound(copy.line)
            for (whose, _, number), copy in self.copies().items()
            if whose == board and number in numbers and copy.grown is not None
        ):
            pass  # a copy that is less full takes the place of the damaged one

    def mended(self, path: str) -> None:
        """The same bundle was just written anew."""
        self._damaged.discard(path)
        self._cached = None
        self._sound.add(path)

    def lacking(self, line: Line) -> int:
        """How many segments of this bundle no sound one has as full."""
        return _lacking(line, self.copies())

    def is_replaced(self, line: Line) -> bool:
        """Is all that it had in sound bundles? They are read for that."""
        while not self.lacking(line):
            copies = self.copies()
            there = [copies[board, boot, number].line for board, boot, number, *_ in line.segments]
            if all(self.is_sound(each) for each in {each.path: each for each in there}.values()):
                return True
        return False

    def complaints(self) -> Iterator[tuple[str, int]]:
        """A text for each damaged bundle, and how many of its segments are still missing."""
        copies = self.copies()
        for path, why in sorted(self._found.items()):
            line = self._lines[path]
            lacking, count = _lacking(line, copies), len(line.segments)
            here = f"{count - lacking} of its {count} segments are in other bundles"
            yield f"{self._manifest.folder / path}: {why}; {here}", lacking


def _lacking(line: Line, copies: dict[Key, Copy]) -> int:
    count = 0
    grown = {tuple(key): length for *key, length in line.growing}
    for board, boot, number, _, last in line.segments:
        key = (board, boot, number)
        count += key not in copies or fuller(last, grown.get(key), copies[key])
    return count


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
