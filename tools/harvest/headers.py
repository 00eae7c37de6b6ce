"""What a board says of its segments itself, each asked for once.

Any client can publish a head, and one may be out of date. So a head only says where to look: what
is there, and who wrote it when, say the headers.
"""

from collections.abc import Sequence
from typing import Protocol

from ..errors import ToolError
from .network import Gone, Head
from .segments import HEADER, Header, NotASegment, header

MOST = 64  # segments that a head may be wrong by


class Board(Protocol):
    """What of network.Ring is needed here."""

    def read(self, board: str, segment: int, begin: int, end: int | None) -> bytes: ...


class Asked:
    """One board, at one time."""

    def __init__(self, ring: Board, board: str) -> None:
        self._ring, self._board = ring, board
        self._found: dict[int, Header | NotASegment | Gone] = {}

    def header(self, number: int) -> Header:
        """Of this segment; Gone, or NotASegment where something else is there."""
        if number not in self._found:
            self._found[number] = self._ask(number)
        found = self._found[number]
        if isinstance(found, Header):
            return found
        raise found

    def has(self, number: int) -> bool:
        """Is there anything with this number?"""
        try:
            self.header(number)
        except Gone:
            return False
        except NotASegment:
            pass
        return True

    def newest(self, head: Head) -> int | None:
        """The last that is there, of those that the head tells of; ToolError if none of many."""
        told = range(head.segment, head.first - 1, -1)
        there = next((number for number in told[:MOST] if self.has(number)), None)
        if there is None and len(told) > MOST:
            last = f"{head.segment - MOST + 1} to {head.segment}"
            raise self.disbelieved(f"none of its segments {last} is there")
        return there

    def disbelieved(self, why: str) -> ToolError:
        """What there is to say of a head that is too far from what is there."""
        return ToolError(f"board {self._board}: its head is not believed: {why}")

    def beginning(self, head: Head, numbers: Sequence[int]) -> int:
        """How many of these at their beginning may be left out, as a head that tells of them is
        not believed: as many as are not there, in one piece, if they are more than a few. It is
        believed if its first segment is there: then those between were deleted."""
        low, high = min(MOST, len(numbers)) - 1, len(numbers)
        if len(numbers) <= MOST or self.has(head.first):
            return 0
        if any(self.has(number) for number in numbers[: low + 1]):
            return 0
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.has(numbers[middle]) else (middle, high)
        return high

    def _ask(self, number: int) -> Header | NotASegment | Gone:
        try:
            found = header(self._ring.read(self._board, number, 0, HEADER.size))
        except (Gone, NotASegment) as error:
            return error
        if (found.board, found.segment) == (self._board, number):
            return found
        return NotASegment(f"it is segment {found.segment} of board {found.board}")
