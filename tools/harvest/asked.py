"""What a board says of its segments itself, each asked for once.

Any client can publish a head, and one may be out of date. So a head only says where to look: what
is there, and who wrote it when, say the headers.
"""

from typing import Protocol

from .network import Gone, Head
from .segments import HEADER, Header, NotASegment, header


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
        """The last that is there, of those that the head tells of."""
        there = (n for n in range(head.segment, head.first - 1, -1) if self.has(n))
        return next(there, None)

    def _ask(self, number: int) -> Header | NotASegment | Gone:
        try:
            found = header(self._ring.read(self._board, number, 0, HEADER.size))
        except (Gone, NotASegment) as error:
            return error
        if (found.board, found.segment) == (self._board, number):
            return found
        return NotASegment(f"it is segment {found.segment} of board {found.board}")
