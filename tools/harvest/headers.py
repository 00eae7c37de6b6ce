"""The headers of a board's segments, each requested once.

A head is a board's retained announcement of its ring. Any client can publish one, and it may be
out of date. So a head only says where to look; the headers say which segments exist, and which
board and boot wrote them.
"""

from collections.abc import Sequence
from typing import Protocol

from ..errors import ToolError
from .network import Gone, Head
from .segments import HEADER_SIZE, Header, NotASegment, header

MOST = 64  # segments that a head may be wrong by


class Board(Protocol):
    """The method of network.Ring that is used here."""

    def read(self, board: str, segment: int, begin: int, end: int | None) -> bytes: ...


class Headers:
    """The headers of one board, during one harvest or one look."""

    def __init__(self, ring: Board, board: str) -> None:
        self._ring, self._board = ring, board
        self._found: dict[int, Header | NotASegment | Gone] = {}

    def header(self, number: int) -> Header:
        """The header of this segment. Raises Gone, or NotASegment if it is something else."""
        if number not in self._found:
            self._found[number] = self._ask(number)
        found = self._found[number]
        if isinstance(found, Header):
            return found
        raise found

    def has(self, number: int) -> bool:
        """Does the board have anything with this number?"""
        try:
            self.header(number)
        except Gone:
            return False
        except NotASegment:
            pass
        return True

    def newest(self, head: Head) -> int | None:
        """The newest existing segment that the head names. None if none of a few exists; ToolError
        if none of many does."""
        named = range(head.segment, head.first - 1, -1)
        there = next((number for number in named[:MOST] if self.has(number)), None)
        if there is None and len(named) > MOST:
            last = f"{head.segment - MOST + 1} to {head.segment}"
            raise self.rejected(f"none of the segments {last} exists")
        return there

    def rejected(self, why: str) -> ToolError:
        """The error for a head that is too far from what the board has."""
        return ToolError(f"board {self._board}: wrong head (announcement of its ring): {why}")

    def beginning(self, head: Head, numbers: Sequence[int]) -> int:
        """How many of these numbers, from the first on, to skip because they do not exist.

        0 if the first segment that the head names exists: then numbers in between were deleted,
        and each is requested. 0, too, if one of the first few exists."""
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
            found = header(self._ring.read(self._board, number, 0, HEADER_SIZE))
        except (Gone, NotASegment) as error:
            return error
        if (found.board, found.segment) == (self._board, number):
            return found
        return NotASegment(f"it is segment {found.segment} of board {found.board}")
