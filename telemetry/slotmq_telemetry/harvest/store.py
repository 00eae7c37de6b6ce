"""The path of a fetched segment into a bundle: pieces, whole segments in partial/, bundles/.

A harvest may be killed at any moment, and the next one continues: it appends to a piece, does not
fetch a whole segment again, and names a bundle after its contents, so writing it twice makes one
file. A segment leaves partial/ when its manifest line is on the disk.
"""

import hashlib
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

from slotmq_tools.errors import ToolError

from .damage import Damage
from .manifest import (
    BUNDLES,
    Copy,
    Key,
    Line,
    Manifest,
    Segment,
    fuller,
    replace_file,
    sync_folder,
)
from .segments import Header, NotASegment, Scan, fitting, header, padded, scan

PARTIAL = "partial"
_BUNDLE = re.compile(r"[0-9a-f]{16}\.smq")


@dataclass(frozen=True)
class Waiting:
    """A segment in partial/."""

    path: Path
    scan: Scan
    growing: bool

    @property
    def key(self) -> Key:
        head = self.scan.header
        return head.board, head.boot, head.segment


class Store:
    """The folder of a harvest, whose lock the caller has."""

    def __init__(self, manifest: Manifest) -> None:
        self.manifest = manifest
        self.folder = manifest.folder
        self.damage = Damage(manifest)
        self._partial = self.folder / PARTIAL
        self._partial.mkdir(exist_ok=True)

    def piece(self, board: str, segment: int) -> Path:
        """Where bytes of a segment gather that is not whole yet."""
        return self._partial / f"{board}-{segment:08x}.part"

    def keep(self, data: bytes, *, growing: bool) -> Waiting:
        """A segment is whole, as far as the board has it: of one that grows the record at its
        end that may be half written is not kept; nor is what is behind the size that its header
        has."""
        data = fitting(data)
        found = scan(data)
        head = found.header
        is_damaged = found.torn and not found.cut
        content = data[: found.end] if growing and not is_damaged else data
        ending = "open" if growing else "seg"
        name = f"{_name(head.board, head.boot, head.segment)}.{ending}"
        replace_file(self._partial / name, content)
        self.piece(head.board, head.segment).unlink(missing_ok=True)
        return Waiting(self._partial / name, found, growing)

    def waiting(self) -> list[Waiting]:
        """The segments that no line has yet, in order; what a line has is removed."""
        best: dict[Key, Waiting] = {}
        for path in sorted(self._partial.iterdir()):
            if path.suffix not in (".seg", ".open") or path.name.startswith("."):
                continue
            one = Waiting(path, _scanned(path), path.suffix == ".open")
            grown = 0 if one.growing else None
            there = self.damage.copy(one.key)
            if there and not fuller(one.scan.last, grown, there):
                path.unlink()
            elif one.key not in best or one.scan.last >= best[one.key].scan.last:
                best[one.key] = one
        return [best[key] for key in sorted(best)]

    def open(self, key: Key) -> bytes | None:
        """What waits of a segment that is still growing."""
        path = self._partial / f"{_name(*key)}.open"
        return path.read_bytes() if path.exists() else None

    def bundle(self, source: str, *, open_ones: bool = True) -> list[Line]:
        """Write what waits as one bundle (one for each size of segments), then its line.

        Without `open_ones`, the newest segment of each board goes on waiting while it grows.
        """
        waiting = self.waiting()
        if not open_ones:
            newest = {each.key[0]: each for each in waiting}  # they are in order
            waiting = [e for e in waiting if not (e.growing and newest[e.key[0]] is e)]
        lines = []
        for size in sorted({each.scan.header.size for each in waiting}):
            of_size = [each for each in waiting if each.scan.header.size == size]
            lines.append(self._bundle(of_size, size, source))
        for each in waiting:
            each.path.unlink()
        return lines

    def _bundle(self, waiting: list[Waiting], size: int, source: str) -> Line:
        writer = Writer(self.folder)
        line = Line("", 0, "", size, round(time.time(), 3), source)
        for each in waiting:
            writer.write(padded(each.path.read_bytes(), size))
            found = each.scan
            grown = found.end if each.growing else None
            line.segments.append(Segment(*each.key, found.header.first, found.last, grown))
        line.path, line.size, line.sha256 = writer.close()
        self.manifest.append(line)
        self.damage.written(line)
        return line

    def known(self, key: Key) -> bytes | None:
        """What a bundle has of a segment that was still growing."""
        there = self.damage.copy(key)
        if there is None or there.grown is None:
            return None
        return self._bytes(there)[: there.grown]

    def held(self, copy: Copy) -> bytes | None:
        """What a bundle has of a sealed segment: to its last record, or what is torn behind.
        None of a bundle that has rotted, so that nobody can say: its SHA-256 tells."""
        data = self._bytes(copy)
        try:
            found = scan(data)
        except NotASegment:
            return None
        length = max(found.end, len(data.rstrip(b"\xff")))
        return data[:length] if found.last >= copy.last else None

    def _bytes(self, copy: Copy) -> bytes:
        size = copy.line.segment_size
        with (self.folder / copy.line.path).open("rb") as file:
            file.seek(copy.index * size)
            return file.read(size)


def _name(board: str, boot: int, segment: int) -> str:
    return f"{board}-{boot:08x}-{segment:08x}"


def _scanned(path: Path) -> Scan:
    try:
        return scan(fitting(path.read_bytes()))
    except NotASegment as error:
        raise ToolError(f"{path}: {error}; no harvest wrote this file: move it away") from None


def sweep(manifest: Manifest) -> None:
    """Remove the bundles that no line has, of a run that was killed between the two."""
    named = {line.path for line in manifest.lines()}
    for path in (manifest.folder / BUNDLES).glob("*.smq"):
        if f"{BUNDLES}/{path.name}" not in named and _BUNDLE.fullmatch(path.name):
            path.unlink()


class Writer:
    """A bundle while it is written, under a name that no reader looks at."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / BUNDLES
        self._folder.mkdir(exist_ok=True)
        self._fresh = self._folder / ".new"
        self._file = self._fresh.open("wb")
        self._digest = hashlib.sha256()
        self._size = 0

    def write(self, data: bytes) -> None:
        self._file.write(data)
        self._digest.update(data)
        self._size += len(data)

    def close(self) -> tuple[str, int, str]:
        """On the disk, with its name; -> path, size and SHA-256 as the manifest has them."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        digest = self._digest.hexdigest()
        path = self._folder / f"{digest[:16]}.smq"
        self._fresh.replace(path)
        sync_folder(self._folder)
        return f"{BUNDLES}/{path.name}", self._size, digest


def same_segment(piece: bytes, segment: Header) -> bool:
    """Do bytes from before belong to this segment?"""
    try:
        return header(piece) == segment
    except NotASegment:
        return False
