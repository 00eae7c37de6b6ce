"""What a driver knows of a board's ring: where each segment begins, and how far the newest is
written. Positions are (boot, seq) of the next record; without Spark.

A segment's header is asked for once. Of the newest segment only what is new is fetched, to
know the last record that is whole: a position never lies behind what is on flash.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..harvest.network import Gone, Head, Ring
from ..harvest.segments import HEADER, NotASegment, header, scan

UNKNOWN = 0xFFFFFFFF  # how many records a gap has, where nobody can say
_RECORD = 40  # bytes, more or less


class Position(NamedTuple):
    """The next record."""

    boot: int
    seq: int


class Piece(NamedTuple):
    """What is wanted of a segment: seq from `first` up to, not including, `end`."""

    segment: int
    boot: int
    first: int
    end: int | None  # None: as far as it goes
    sealed: bool  # is its end part of what is wanted, so that a torn tail is to be told?


class Gap(NamedTuple):
    """Records that the ring has no more."""

    boot: int
    first: int
    lost: int  # how many, or UNKNOWN


class RingIndex:
    """One board."""

    def __init__(self) -> None:
        self._starts: dict[int, Position] = {}  # by segment
        self._head: Head | None = None
        self._tail = b""  # of the newest segment, as far as it was fetched
        self.end = Position(0, 0)

    def update(self, ring: Ring, head: Head) -> None:
        """Ask for what is new."""
        if head == self._head:
            return
        if self._head is None or head.segment != self._head.segment:
            self._tail = b""
        if self._head is not None and (head.boot, head.segment) < self._newest():
            self._starts = {}  # the board was emptied
        there = range(head.first, head.segment + 1)
        self._starts = {number: at for number, at in self._starts.items() if number in there}
        for number in there:
            if number not in self._starts:
                self._look(ring, head.board, number)
        self._extend(ring, head)
        self._head = head

    def _newest(self) -> tuple[int, int]:
        assert self._head is not None
        return self._head.boot, self._head.segment

    def _look(self, ring: Ring, board: str, number: int) -> None:
        try:
            found = header(ring.read(board, number, 0, HEADER.size))
        except (Gone, NotASegment):
            return  # the records that it had are a gap
        self._starts[number] = Position(found.boot, found.first)

    def _extend(self, ring: Ring, head: Head) -> None:
        if head.segment not in self._starts:
            self.end = max(self._starts.values(), default=Position(0, 0))
            return
        try:
            self._tail += ring.read(head.board, head.segment, len(self._tail), head.length)
            found = scan(self._tail)
        except (Gone, NotASegment):
            self._tail = b""
            self.end = self._starts.pop(head.segment)
            return
        self.end = Position(found.header.boot, found.last + 1)

    @property
    def oldest(self) -> Position:
        """The first record that the ring has."""
        return min(self._starts.values(), default=self.end)

    def _spans(self) -> Iterator[tuple[int, Position, Position]]:
        """Every segment: from which position to which."""
        numbers = sorted(self._starts)
        for number, after in zip(numbers, [*numbers[1:], None], strict=True):
            yield number, self._starts[number], self.end if after is None else self._starts[after]

    def limited(self, start: Position, most: int) -> Position:
        """So far from `start` that there are no more than `most` records between; the last
        segment of a boot, whose end only its bytes tell, goes whole."""
        left = most
        for _, begin, end in self._spans():
            if end <= start:
                continue
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
        for number, begin, after in self._spans():
            if begin >= end or after <= start:
                continue
            first = max(begin.seq, start.seq if start.boot == begin.boot else 0)
            last = min(after, end)
            stop = last.seq if last.boot == begin.boot else None
            sealed = number != max(self._starts) and after <= end
            found.append(Piece(number, begin.boot, first, stop, sealed))
        return found

    def gaps(self, start: Position, end: Position) -> list[Gap]:
        """What was overwritten between two positions."""
        oldest = min(self.oldest, end)
        if oldest <= start:
            return []
        if oldest.boot == start.boot:
            return [Gap(start.boot, start.seq, oldest.seq - start.seq)]
        found = [Gap(start.boot, start.seq, UNKNOWN)]
        found += [Gap(boot, 0, UNKNOWN) for boot in range(start.boot + 1, oldest.boot)]
        return found + ([Gap(oldest.boot, 0, oldest.seq)] if oldest.seq else [])
