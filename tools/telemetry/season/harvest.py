"""The harvests of a season: what goes into bundles, and how bundles are damaged or compacted."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from ...harvest.manifest import Line, locked
from ...harvest.manifest import Segment as Placed
from . import writer as w
from .writer import Entry, Segment


@dataclass(frozen=True)
class Taken:
    """A record that can be read from a bundle."""

    entry: Entry
    line: int
    offset: int
    harvested_ms: int


@dataclass(frozen=True)
class Bad:
    """A frame that cannot."""

    line: int
    offset: int
    reason: str
    file: str
    end: int = 0  # of a frame that is there as a whole
    segment: tuple[str, int, int] | None = None  # board, boot and number, if that can be read


@dataclass
class Harvest:
    """A harvest folder that is being filled, and what is truly in it."""

    folder: Path
    size: int  # of all segments
    random: Random
    taken: list[Taken] = field(default_factory=list)
    bad: list[Bad] = field(default_factory=list)
    hidden: set[tuple[str, int, int]] = field(default_factory=set)  # by these; others may be too
    lines: int = 0
    told: list[Line] = field(default_factory=list)  # not in the manifest yet
    sound: dict[int, tuple[int, list[Segment]]] = field(default_factory=dict)  # by line

    def compact(self, *, late: bool = False) -> None:
        """The bundles without damage become one, in which each segment is once and as full as
        it was found, as if the last of them were all; their lines stay, empty.

        `late`: bronze has taken them already."""
        if not self.sound:
            return
        self.save()
        fullest: dict[tuple[bytes, int, int], Segment] = {}
        latest = max(at for at, _ in self.sound.values())
        for copy in (copy for _, copies in self.sound.values() for copy in copies):
            key = (bytes(copy.data[8:16]), copy.boot, copy.number)
            if key not in fullest or len(copy.data) > len(fullest[key].data):
                fullest[key] = copy
        with locked(self.folder) as manifest:
            gone = [line for line in manifest.lines() if line.line in self.sound]
            paths = [line.path for line in gone]
            manifest.replace(gone, (), "compacted")
        for path in paths:
            (self.folder / path).unlink()
        if not late:
            self.taken = [taken for taken in self.taken if taken.line not in self.sound]
            self.bad = [bad for bad in self.bad if bad.line not in self.sound]
        self.sound.clear()
        self.bundle([fullest[key] for key in sorted(fullest)], latest)
        self.save()

    def save(self) -> None:
        """Write the lines of the new bundles."""
        with locked(self.folder) as manifest:
            manifest.append(*self.told)
        self.told.clear()

    def bundle(self, copies: list[Segment], at: int, damage: float = 0.0) -> None:
        """One bundle of these segments, some of them damaged on their way."""
        (self.folder / "bundles").mkdir(parents=True, exist_ok=True)
        path = f"bundles/{self.lines:04}.smq"
        data, is_sound = bytearray(), True
        for copy in copies:
            hurt = self.random.random() < damage
            is_sound = is_sound and not hurt
            data += (self._damaged if hurt else self._whole)(copy, path, len(data), at)
        end = len(data)
        if copies and self.random.random() < damage / 2:
            end -= self.random.randrange(1, self.size)
            self._cut(end, path, copies[end // self.size])
        if is_sound and end == len(data):
            self.sound[self.lines] = (at, copies)
        (self.folder / path).write_bytes(data[:end])
        about = len(data), hashlib.sha256(data).hexdigest(), self.size, at / 1000, "season"
        there = [Placed(c.data[8:16].hex(), c.boot, c.number, *_seqs(c)) for c in copies]
        self.told.append(Line(path, *about, there))
        self.lines += 1

    def _whole(self, copy: Segment, path: str, at: int, when: int) -> bytes:
        self._take(copy, at, when, len(copy.entries))
        self._torn(copy, path, at)
        return bytes(copy.data.ljust(self.size, b"\xff"))

    def _torn(self, copy: Segment, path: str, at: int) -> None:
        rest = copy.data[len(copy.data) - copy.torn :]
        if rest.rstrip(b"\xff"):
            self._fail(path, at + len(copy.data) - copy.torn, "torn record", copy)

    def _take(self, copy: Segment, at: int, when: int, count: int) -> None:
        for offset, entry in copy.entries[:count]:
            self.taken.append(Taken(entry, self.lines, at + offset, when))

    def _fail(
        self, path: str, offset: int, reason: str, copy: Segment | None = None, end: int = 0
    ) -> None:
        whose = (copy.data[8:16].hex(), copy.boot, copy.number) if copy else None
        self.bad.append(Bad(self.lines, offset, reason, path, end, whose))

    def _damaged(self, copy: Segment, path: str, at: int, when: int) -> bytes:
        """One of the things that may befall a copy."""
        data = bytearray(copy.data.ljust(self.size, b"\xff"))
        kind = self.random.randrange(4)
        # A record that ends as erased flash does would look torn.
        ends = [offset + 20 + len(entry.payload) for offset, entry in copy.entries]
        sound = [i for i, end in enumerate(ends) if data[end - 1] != 0xFF]
        if kind == 0 and sound:
            count = self.random.choice(sound)
            offset, entry = copy.entries[count]
            data[offset + 8 + self.random.randrange(4)] ^= 1 << self.random.randrange(8)
            self._take(copy, at, when, count)
            end = at + offset + 20 + len(entry.payload)
            self._fail(path, at + offset, "bad CRC", copy, end)
            self._hide(entry for _, entry in copy.entries[count:])
        elif kind == 1:
            data[:4] = b"what"
            self._fail(path, at, "not a segment")
        elif kind == 2:
            data[20] ^= 4
            self._fail(path, at, "bad header CRC")
        else:
            data[4] = 9
            data[28:32] = w.le(zlib.crc32(data[:28]), 4)
            self._fail(path, at, "format version 9")
        return bytes(data)

    def _hide(self, entries: Iterable[Entry]) -> None:
        self.hidden |= {(entry.board, entry.boot, entry.seq) for entry in entries}

    def _cut(self, end: int, path: str, copy: Segment) -> None:
        """The bundle ends there, inside of its last segment."""
        start = end // self.size * self.size

        def cut(offset: int) -> bool:
            return offset >= start

        inside = [b for b in self.bad if b.line == self.lines and cut(b.offset)]
        here = [t for t in self.taken if t.line == self.lines and cut(t.offset)]
        whole = [t for t in here if t.offset + 20 + len(t.entry.payload) <= end]
        self.bad = [b for b in self.bad if b not in inside]
        self.taken = [t for t in self.taken if t not in here] + whole
        self._after_cut(end, start, path, copy, inside, here, whole)
        self._fail(path, end, "cut bundle")

    def _after_cut(
        self, end: int, start: int, path: str, copy: Segment, inside: list[Bad],
        here: list[Taken], whole: list[Taken],
    ) -> None:  # fmt: skip
        """What the decoder says of the segment that is left in part."""
        at_start = [b for b in inside if b.offset == start]
        if 0 < end - start < w.HEADER:
            self._fail(path, start, "cut header")
        elif end > start and at_start:
            self.bad.append(at_start[0])
        elif end > start:
            following = [t.offset for t in here if t not in whole] + [b.offset for b in inside]
            last = max((t.offset + 20 + len(t.entry.payload) for t in whole), default=0)
            last = max(last, start + w.HEADER)
            whole_bad = [b for b in inside if b.offset == last and 0 < b.end <= end]
            self.bad += whole_bad
            if following and last < end and not whole_bad:
                self._fail(path, last, "torn record", copy)
                self._hide(taken.entry for taken in here if taken not in whole)


def _seqs(copy: Segment) -> tuple[int, int]:
    seqs = [entry.seq for _, entry in copy.entries]
    return (seqs[0], seqs[-1]) if seqs else (copy.first_seq, copy.first_seq)
