"""The harvests of a season: what goes into bundles, and how bundles are damaged or compacted."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from ..harvest.manifest import Line, locked
from ..harvest.manifest import Segment as Placed
from .writer import RECORD, Entry, Segment


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
        hurt = [self.random.random() < damage for _ in copies]
        kept = len(copies)
        if copies and self.random.random() < damage / 2:
            kept -= 1
            self.bad.append(Bad(self.lines, kept * self.size, "not a segment", path))
        elif not any(hurt):
            self.sound[self.lines] = (at, copies)
        data = bytearray()
        for copy, is_hurt in zip(copies[:kept], hurt, strict=False):
            data += self._segment(copy, path, len(data), at, is_hurt)
        data = data.ljust(len(copies) * self.size, b"\xff")
        (self.folder / path).write_bytes(data)
        about = len(data), hashlib.sha256(data).hexdigest(), self.size, at / 1000, "season"
        there = [Placed(c.data[8:16].hex(), c.boot, c.number, *_seqs(c)) for c in copies]
        self.told.append(Line(path, *about, there))
        self.lines += 1

    def _segment(self, copy: Segment, path: str, at: int, when: int, is_hurt: bool) -> bytearray:
        """Its bytes; if it is hurt, a bit of a record or of the header is another one."""
        data = copy.data.ljust(self.size, b"\xff")
        rest = len(copy.data) - copy.torn
        reason = "torn record" if copy.data[rest:].rstrip(b"\xff") else None
        count, end = len(copy.entries), rest
        # A record that ends as erased flash does would look torn.
        sound = [i for i, (o, e) in enumerate(copy.entries) if data[e.end(o) - 1] != 0xFF]
        if is_hurt and sound and self.random.random() < 0.5:
            count, reason = self.random.choice(sound), "bad CRC"
            end = copy.entries[count][0]
            data[end + 8 + self.random.randrange(RECORD - 16)] ^= 1 << self.random.randrange(8)
            self.hidden |= {(e.board, e.boot, e.seq) for _, e in copy.entries[count:]}
        elif is_hurt:
            count, end, reason = 0, 0, "bad header CRC"
            data[20] ^= 4
        if reason:
            self.bad.append(Bad(self.lines, at + end, reason, path))
        for offset, entry in copy.entries[:count]:
            self.taken.append(Taken(entry, self.lines, at + offset, when))
        return data


def _seqs(copy: Segment) -> tuple[int, int]:
    seqs = [entry.seq for _, entry in copy.entries]
    return (seqs[0], seqs[-1]) if seqs else (copy.first_seq, copy.first_seq)
