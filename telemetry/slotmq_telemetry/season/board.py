"""A board in the field: its crystal, its ring of segments, and what power cuts leave of it.

Like lib/slotmq, it writes the time that it knows into the beginning of each segment, and again
every three days.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from . import writer as w
from .writer import NO_ID, Entry, Segment

HOUR = 3_600_000  # ms
DAY = 24 * HOUR
RTC, TOLD, HARVESTER, NTP = 1, 2, 3, 4  # who says what time it is
DEF, MESSAGE, EVENT, ANCHOR, GAP = 1, 2, 3, 4, 5
OVERWRITTEN, RING_FULL, WRITE_FAILED = 1, 2, 3
NO_SEGMENT = 0xFFFFFFFF
TO_THE_END = 0xFFFFFFFF
GAP_SIZE = 36
STAY = 3 * DAY  # each time a board records something of its own
TIME_PASSES = 10
Lost = tuple[int, int, int, int, int]  # why, boot, first number, how many, segment


@dataclass(frozen=True)
class Make:
    """How a board is set up."""

    segment_size: int = 1024
    ring: int = 6  # segments
    stops: bool = False  # when the ring is full; otherwise the oldest segment goes
    flush: int = 4  # records that wait in RAM at most
    fails: float = 0.0  # how often writing to the flash does


@dataclass(frozen=True)
class Wall:
    """The time, as somebody has said it."""

    quality: int
    wall: int  # ms
    error: int  # ms
    uptime: int  # of the board then, ms
    is_false: bool  # whoever said so was wrong

    def at(self, uptime: int) -> Wall:
        """The same, as it has passed since by the board's own crystal."""
        passed = uptime - self.uptime
        error = self.error + passed // 10_000
        return Wall(self.quality, self.wall + passed, error, uptime, self.is_false)

    def gives_way(self, other: Wall) -> bool:
        """Another one is known from now on."""
        now = self.at(other.uptime)
        return other.quality >= now.quality or other.error <= now.error

    def payload(self) -> bytes:
        """Of an ANCHOR."""
        return w.le(self.wall // 1000, 4) + w.le(self.wall % 1000, 2) + w.le(self.error, 4)


class Board:
    """Records what it is told, at true times in ms."""

    def __init__(self, name: bytes, make: Make, drift_ppm: int, random: Random) -> None:
        self.name, self.hex = name, name.ljust(8, b"\0").hex()
        self._make, self._drift, self._random = make, drift_ppm, random
        self.ring: list[Segment] = []
        self.boot, self.seq, self._number = 0, 0, 0
        self._started, self._on_flash, self._stayed = 0, 0, 0
        self._wall: Wall | None = None
        self._lost: tuple[int, int] | None = None  # boot and number of the first, ring full
        self.latest: tuple[bytes, str, str] | None = None  # payload, client and topic
        self.times: dict[tuple[int, int], int] = {}  # by boot and seq
        self.false_anchors: set[tuple[str, int, int]] = set()

    def renew(self) -> None:
        """Its ring is formatted, or loses the file that says which boot this is: the next one
        is drawn at random, as on its very first day."""
        drawn = self._random.getrandbits(24) << 4
        if self._random.random() < 0.5:
            self.ring, self._number, self.boot = [], 0, drawn
        else:
            self.boot = max(self.boot, drawn)

    def start(self, at: int) -> None:
        """The next boot."""
        self.boot, self.seq, self._started, self._lost = self.boot + 1, 0, at, None
        self._stayed, self._wall = at, None
        self._open(at)

    def uptime(self, at: int) -> int:
        """Milliseconds since boot by the board's own crystal."""
        elapsed = at - self._started
        return elapsed + elapsed * self._drift // 1_000_000

    def wait(self, until: int) -> None:
        """Each three days it says that it is there."""
        while self._stayed + STAY <= until:
            self._stayed += STAY
            if self._wall is None:
                self.put(self._stayed, EVENT, TIME_PASSES, b"")
            else:
                self._anchor(self._stayed, self._wall.at(self.uptime(self._stayed)))

    def tell(self, at: int, quality: int, wall: int, error: int, *, is_false: bool) -> None:
        """Somebody says what time it is: known from now on unless what is known is better."""
        told = Wall(quality, wall, error, self.uptime(at), is_false)
        if self._wall is None or self._wall.gives_way(told):
            self._wall = told
        self._anchor(at, told)

    def _anchor(self, at: int, told: Wall) -> None:
        self._noted(self.put(at, ANCHOR, told.quality, told.payload()), told)

    def _noted(self, key: tuple[str, int, int], told: Wall) -> None:
        if told.is_false:
            self.false_anchors.add(key)

    def put(
        self, at: int, kind: int, flags: int, payload: bytes,
        client: str | None = None, topic: str | None = None,
    ) -> tuple[str, int, int]:  # fmt: skip
        """Record something; its identity, whether it gets to the flash or not."""
        names = [(i, text) for i, text in enumerate((client, topic)) if text is not None]
        segment = self._room(at, names, len(payload))
        if segment is None:
            self.seq += 1
            return self.hex, self.boot, self.seq - 1
        for i, text in names:
            if (i, text) not in segment.ids:
                number = segment.define(i, text)
                ids = (number, NO_ID) if i == 0 else (NO_ID, number)
                self._append(segment, at, DEF, i, ids, (None, None), text.encode())
        ids = (
            NO_ID if client is None else segment.ids[0, client],
            NO_ID if topic is None else segment.ids[1, topic],
        )
        seq = self._append(segment, at, kind, flags, ids, (client, topic), payload)
        if sum(offset >= self._on_flash for offset, _ in segment.entries) >= self._make.flush:
            self._flush(at)
        return self.hex, self.boot, seq

    def finish(self) -> None:
        """An orderly end: what waits is written."""
        if self.ring:
            self._on_flash = len(self.ring[-1].data)

    def cut(self) -> None:
        """The power goes away: what waits is lost, but perhaps for the first bytes of it."""
        if not self.ring or self._lost:
            return
        segment = self.ring[-1]
        waiting = len(segment.data) - self._on_flash
        keep = self._on_flash + self._random.randint(0, waiting)
        ends = [entry.end(offset) for offset, entry in segment.entries]
        end = next((end for end in ends if end >= keep), keep)
        if not segment.data[keep:end].rstrip(b"\xff"):  # as erased flash reads
            keep = end
        del segment.data[keep:]
        segment.entries = [x for x, end in zip(segment.entries, ends, strict=True) if end <= keep]
        segment.torn = keep - max((end for end in ends if end <= keep), default=w.HEADER)
        self._on_flash = keep

    def copies(self) -> list[Segment]:
        """What is on the flash now."""
        found = []
        for segment in self.ring:
            last = segment is self.ring[-1] and not segment.torn
            size = self._on_flash if last else len(segment.data)
            entries = [(o, e) for o, e in segment.entries if e.end(o) <= size]
            found.append(
                Segment(segment.number, segment.boot, segment.first_seq, segment.data[:size],
                        entries, segment.torn)
            )  # fmt: skip
        return found

    def clear(self, at: int) -> None:
        """Somebody has fetched everything: but for the newest, segments may go."""
        self._flush(at)
        del self.ring[:-1]

    def _room(self, at: int, names: list[tuple[int, str]], payload: int) -> Segment | None:
        if self._lost and len(self.ring) >= self._make.ring:
            return None
        segment = self.ring[-1]
        texts = [len(text.encode()) for i, text in names if (i, text) not in segment.ids]
        need = 20 + payload + sum(texts) + 20 * len(texts)
        kept = GAP_SIZE if self._make.stops else 0
        if self._lost or len(segment.data) + need + kept > self._make.segment_size:
            self._flush(at)
            opened = self._open(at)
            assert opened is None or len(opened.data) + need + kept <= self._make.segment_size
            return opened
        return segment

    def _open(self, at: int, *failed: Lost) -> Segment | None:
        """A new segment; None if the ring is full and the recorder stops."""
        gone = None
        if len(self.ring) >= self._make.ring:
            if self._make.stops:
                self._stop(at)
                return None
            gone = self.ring.pop(0)
        size = self._make.segment_size
        head = w.header(self.name, self.boot, self._number, self.seq, size)
        segment = Segment(self._number, self.boot, self.seq, bytearray(head))
        self.ring.append(segment)
        self._number += 1
        self._on_flash = len(head)
        if self._lost:
            boot, first = self._lost
            self._lost = None
            self._gap(segment, at, RING_FULL, boot, first, self.seq - first, NO_SEGMENT)
        if gone is not None and gone.entries:
            first, count = gone.entries[0][1].seq, len(gone.entries)
            self._gap(segment, at, OVERWRITTEN, gone.boot, first, count, gone.number)
        for lost in failed:
            self._gap(segment, at, *lost)
        self._retell(segment, at)
        return segment

    def _retell(self, segment: Segment, at: int) -> None:
        """A segment stands alone: it has the time that is known."""
        if self._wall is not None:
            told = self._wall.at(self.uptime(at))
            seq = self._append(
                segment, at, ANCHOR, told.quality, (NO_ID, NO_ID), (None, None), told.payload()
            )
            self._noted((self.hex, self.boot, seq), told)

    def _stop(self, at: int) -> None:
        """The ring is full; its newest segment has kept room to say so."""
        segment = self.ring[-1]
        if self._lost:
            return
        if segment.boot == self.boot and not segment.torn:
            self._gap(segment, at, RING_FULL, self.boot, self.seq + 1, TO_THE_END, NO_SEGMENT)
            self._on_flash = len(segment.data)
        self._lost = (self.boot, self.seq)

    def _gap(self, segment: Segment, at: int, reason: int, *numbers: int) -> None:
        payload = b"".join(w.le(number, 4) for number in numbers)
        self._append(segment, at, GAP, reason, (NO_ID, NO_ID), (None, None), payload)

    def _flush(self, at: int) -> None:
        segment = self.ring[-1]
        waiting = [entry for offset, entry in segment.entries if offset >= self._on_flash]
        if not waiting or self._random.random() >= self._make.fails:
            self._on_flash = len(segment.data)
            return
        del segment.data[self._on_flash :]
        del segment.entries[-len(waiting) :]
        first = waiting[0].seq
        self._open(at, (WRITE_FAILED, self.boot, first, self.seq - first, NO_SEGMENT))

    def _append(
        self, segment: Segment, at: int, kind: int, flags: int, ids: tuple[int, int],
        names: tuple[str | None, str | None], payload: bytes,
    ) -> int:  # fmt: skip
        uptime = self.uptime(at)
        data = w.record(kind, flags, self.seq, uptime, *ids, payload)
        crc = int.from_bytes(data[:4], "little")
        entry = Entry(self.hex, self.boot, segment.number, self.seq, uptime, kind, flags, *names,
                      payload, crc)  # fmt: skip
        segment.entries.append((len(segment.data), entry))
        segment.data += data
        self.times[self.boot, self.seq] = at
        self.seq += 1
        return self.seq - 1
