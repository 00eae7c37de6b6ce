"""What the driver knows of a board's ring: where each segment begins, and how much of the newest
one is written. A position is (boot, seq) of the next record. Nothing here needs Spark.

The header of a segment is requested once. Of the newest segment the driver fetches only what is
new, to find the last whole record: a position never lies after what is on flash. So of the newest
segment the driver knows where records lie, and which definitions precede them.

Any client can publish a head, and one may be out of date. A head only says where to look; the
headers say what exists.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from ..harvest.headers import MOST, Board, Headers
from ..harvest.network import SEGMENTS, Gone, Head
from ..harvest.segments import HEADER, NotASegment, scan
from . import segment as s

UNKNOWN = 0xFFFFFFFF  # how many records a gap has, where nobody can say
NEAR = 1000  # starts; a boot farther on, or one that is lower, is of a ring that was made anew
_RECORD = 40  # bytes, more or less


class Position(NamedTuple):
    """The next record."""

    boot: int
    seq: int


class Bytes(NamedTuple):
    """Where in a segment wanted records lie, and what of it must be known to read them."""

    begin: int
    end: int
    before: bytes  # its header, and the definitions before `begin`


class Piece(NamedTuple):
    """What is wanted of a segment: seq from `first` up to, not including, `end`."""

    segment: int
    boot: int
    first: int
    end: int | None  # None: as far as it goes
    sealed: bool  # is its end part of what is wanted, so that a torn tail is to be told?
    part: Bytes | None = None  # None: nobody knows, and all of it is to be fetched


class Gap(NamedTuple):
    """Records that the ring has no more."""

    boot: int
    first: int
    lost: int  # how many, or UNKNOWN


class Renewed(NamedTuple):
    """The ring was made anew, and its boots are counted from a number drawn by lot."""

    before: int  # the boot that was read last
    boot: int  # the first that there is now


class RingIndex:
    """One board."""

    def __init__(self) -> None:
        self._starts: dict[int, Position] = {}  # by segment
        self._gone: set[int] = set()  # numbers among theirs that no segment has any more
        self._head: Head | None = None
        self._newest = -1  # segment that can be read
        self._is_sure = False  # does the head tell exactly of that one, and is none newer?
        self._tail = b""  # of the newest segment, as far as it was fetched
        self.end = Position(0, 0)

    def update(self, ring: Board, head: Head) -> None:
        """Ask for what is new. If that fails, or nothing of what the head tells is there, all is
        as it was."""
        if head == self._head:
            return
        headers = Headers(ring, head.board)
        goes_on = self._goes_on(headers, head)
        last = self._last(headers, head, goes_on)
        if last is None:
            return
        known, tail = (self._starts, self._tail) if goes_on else ({}, b"")
        starts, gone = _starts(headers, head, last, known, self._gone if goes_on else set())
        newest = max(starts, default=-1)
        self._extend(ring, head, starts, tail if newest == self._newest else b"")
        self._gone = gone
        exactly = (newest, self.end.boot, len(self._tail))
        self._is_sure = last == newest and (head.segment, head.boot, head.length) == exactly

    def _goes_on(self, headers: Headers, head: Head) -> bool:
        """Has the ring the segments that are known of it still? Not if the board was emptied."""
        if not self._starts or self._head is None:
            return False
        if (head.segment, head.boot) == (self._newest, self._head.boot):
            return True
        return _look(headers, self._newest) == self._starts[self._newest]

    def _last(self, headers: Headers, head: Head, goes_on: bool) -> int | None:
        """The newest segment, which may be one that was just begun. What a head does not tell of
        is looked for where it tells of less than is known, or nothing is."""
        if goes_on and head.segment == self._newest:
            return self._newest
        number = headers.newest(head)
        if number is None or (goes_on and number > self._newest):
            return number
        number = max(number, self._newest) if goes_on else number
        there = next((n for n in range(number, number + MOST) if not headers.has(n + 1)), None)
        if there is None:
            raise headers.rejected(f"there are segments from {number} to {number + MOST}")
        return there

    def _extend(self, ring: Board, head: Head, starts: dict[int, Position], tail: bytes) -> None:
        """By what the newest segment has more than its `tail`; then all of it is known."""
        newest, end = max(starts, default=-1), Position(0, 0)
        if starts:
            try:
                tail += ring.read(head.board, newest, len(tail), None)
                found = scan(tail)
                end = Position(found.header.boot, found.last + 1)
            except (Gone, NotASegment):
                end, tail = starts.pop(newest), b""
        self._starts, self._tail, self._head, self.end = starts, tail, head, end
        self._newest = max(starts, default=-1)

    def is_behind(self, position: Position) -> bool:
        """Is what was read of another ring, that no boot of this one follows on? That says the
        newest segment, if it can be read, and the head tells of it as it is: not one that an older
        segment is left of, under a head that is wrong."""
        return self._is_sure and self.end.boot < position.boot

    def reaches(self, position: Position) -> bool:
        """Is all that was planned up to there on flash, or of a ring that is no more?"""
        return bool(self._starts) and (position <= self.end or self.is_behind(position))

    @property
    def oldest(self) -> Position:
        """The first record that the ring has."""
        return min(self._starts.values(), default=self.end)

    def _spans(self, start: Position) -> Iterator[tuple[int, Position, Position]]:
        """Every segment that has something from `start` on: from which position to which. One that
        is of an earlier boot has not, though the next that can be read may be of a later one."""
        numbers = sorted(self._starts)
        for number, after in zip(numbers, [*numbers[1:], None], strict=True):
            begin, end = self._starts[number], self.end if after is None else self._starts[after]
            if end > start and begin.boot >= start.boot:
                yield number, begin, end

    def limited(self, start: Position, most: int) -> Position:
        """So far from `start` that there are no more than `most` records between; the last
        segment of a boot, whose end only its bytes tell, goes whole."""
        left = most
        for _, begin, end in self._spans(start):
            at = max(begin, start)
            if end.boot != begin.boot:
                left -= (self._head.size if self._head else 0) // _RECORD
                if left <= 0:
                    return end
            elif end.seq - at.seq >= left:
                return Position(at.boot, at.seq + left)
            else:
                left -= end.seq - at.seq
        return self.end

    def pieces(self, start: Position, end: Position) -> list[Piece]:
        """What is to be read to go from one position to the other."""
        found = []
        for number, begin, after in self._spans(start):
            if begin >= end:
                continue
            first = max(begin.seq, start.seq if start.boot == begin.boot else 0)
            last = min(after, end)
            stop = last.seq if last.boot == begin.boot else None
            sealed = number != max(self._starts) and after <= end
            part = self._part(number, first, last)
            found.append(Piece(number, begin.boot, first, stop, sealed, part))
        return found

    def _part(self, number: int, first: int, last: Position) -> Bytes | None:
        """Where it lies, of the newest segment, if that is known to have so many."""
        if number != self._newest or last > self.end:
            return None
        return lying(self._tail, first, last.seq)

    def gaps(self, start: Position, end: Position) -> list[Gap | Renewed]:
        """What the ring has no more, of all between two positions."""
        gone = not self._starts or self.is_behind(start)
        oldest = end if gone else min(self.oldest, end)
        return lost(start, oldest) if oldest > start else []


def lying(segment: bytes, first: int, last: int) -> Bytes:
    """The records from `first` up to, not including, `last`, of a segment that has them whole."""
    at = begin = HEADER.size
    before = [segment[:at]]
    while at + s.RECORD_SIZE <= len(segment):
        _, length, kind, _, seq, *_ = s.RECORD.unpack_from(segment, at)
        if seq >= last or length < s.RECORD_SIZE:
            break
        if seq < first:
            begin = at + length
            if kind == s.DEF:
                before.append(segment[at:begin])
        at += length
    return Bytes(begin, at, b"".join(before))


def _starts(
    headers: Headers, head: Head, last: int, known: dict[int, Position], gone: set[int]
) -> tuple[dict[int, Position], set[int]]:
    """Where each segment begins, from the last on, and which numbers none has: all that are above
    one that is certainly there, whatever is missing between; and those below while the head tells
    of them and a few are there, or while each is there."""
    starts: dict[int, Position] = {}
    missing: set[int] = set()
    lowest = _lowest(headers, head, known)
    missed = 0
    for number in range(last, max(-1, last - SEGMENTS), -1):
        at = known.get(number) if number >= lowest else None
        at = at or (None if number in gone else _look(headers, number))
        if at is not None:
            starts[number], missed = at, 0
        elif number in gone or not headers.has(number):
            missing.add(number)
            missed += 1
            if number < lowest and (missed >= MOST or number < head.first):
                break
    return starts, missing


def _lowest(headers: Headers, head: Head, known: dict[int, Position]) -> float:
    """The lowest number that is certainly there: the head's first if it is, or of those that are
    known the first that still answers. A ring forgets from its beginning on."""
    numbers = sorted(known)
    if head.first in known or headers.has(head.first):
        numbers = [*(number for number in numbers if number < head.first), head.first]

    def answers(number: int) -> bool:
        return number == head.first or _look(headers, number) == known[number]

    at = bisect_left(numbers, True, key=answers)
    return numbers[at] if at < len(numbers) else math.inf


def _look(headers: Headers, number: int) -> Position | None:
    """Where a segment begins; the records of one that cannot be known are a gap."""
    try:
        found = headers.header(number)
    except (Gone, NotASegment):
        return None
    return Position(found.boot, found.first)


def lost(start: Position, oldest: Position) -> list[Gap | Renewed]:
    """All from one position up to another, which may be one of a ring that was made anew."""
    if oldest.boot == start.boot:
        return [Gap(start.boot, start.seq, oldest.seq - start.seq)]
    found: list[Gap | Renewed] = [Gap(start.boot, start.seq, UNKNOWN)]
    if 0 < oldest.boot - start.boot <= NEAR:
        found += [Gap(boot, 0, UNKNOWN) for boot in range(start.boot + 1, oldest.boot)]
    else:
        found.append(Renewed(start.boot, oldest.boot))
    return found + ([Gap(oldest.boot, 0, oldest.seq)] if oldest.seq else [])
