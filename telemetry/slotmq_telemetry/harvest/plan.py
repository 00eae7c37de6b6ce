"""What to fetch from a board's ring over the network: the segments that the folder lacks or has
in part, and whether the board may still be writing them.

The board's head (its retained announcement) says which numbers there are; the headers, which boot
wrote each. A segment is sealed once the board has shown the header of a later one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from slotmq_tools.errors import ToolError

from .network import Gone, Head, Ring
from .segments import HEADER_SIZE, Header, NotASegment, header
from .store import Store

_LOOKED_AT = 64  # of the newest segments, until one has a header


@dataclass
class Plan:
    """What to fetch from one board."""

    head: Head
    ring: Ring
    certain: set[int] = field(default_factory=set)  # numbers that the folder has
    in_vain: int = 0  # segments in a row that were not there
    last: Header | None = None  # of the newest segment that has one
    _found: dict[int, Header | NotASegment | Gone] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._there) - len(self.certain)

    def __iter__(self) -> Iterator[int]:
        """The numbers of the segments to fetch."""
        return (number for number in self._there if number not in self.certain)

    @property
    def _there(self) -> range:
        return range(self.head.first, self.head.segment + 1)

    def grows(self, segment: Header) -> bool:
        """May the board write more of it?"""
        last = self.last
        return last is None or segment.segment >= last.segment or segment.boot > last.boot

    def length(self, segment: Header) -> int | None:
        """Bytes of a growing segment on flash, if the head names this segment."""
        return self.head.length if segment.segment == self.head.segment else None

    def header(self, number: int) -> Header:
        """Of this segment, requested once. Raises Gone, or NotASegment if it is something else."""
        if number not in self._found:
            self._found[number] = self._ask(number)
        found = self._found[number]
        if isinstance(found, Header):
            return found
        raise found

    def boot(self, number: int) -> int | None:
        """That wrote it; None: it has no header."""
        try:
            return self.header(number).boot
        except (Gone, NotASegment):
            return None

    def _ask(self, number: int) -> Header | NotASegment | Gone:
        board = self.head.board
        try:
            found = header(self.ring.read(board, number, 0, HEADER_SIZE))
        except (Gone, NotASegment) as error:
            return error
        if (found.board, found.segment) == (board, number):
            return found
        return NotASegment(f"it is segment {found.segment} of board {found.board}")


def plan(ring: Ring, head: Head, store: Store) -> Plan:
    """Compare the ring with the folder; what the folder certainly has is left out. ToolError:
    the board has nothing of what its head names."""
    found, there = Plan(head, ring), range(head.first, head.segment + 1)
    with_header = (n for n in reversed(there[-_LOOKED_AT:]) if found.boot(n) is not None)
    newest = next(with_header, None)
    if newest is not None:
        found.last = found.header(newest)
    elif all(isinstance(found._found[n], Gone) for n in there[-_LOOKED_AT:]):
        raise ToolError(
            f"board {head.board}: its head names segments {head.first} to {head.segment}, and"
            " the newest of them do not exist"
        )
    found.certain = _certain(found, _sealed(store, head.board, there))
    return found


def _sealed(store: Store, board: str, there: range) -> dict[int, dict[int, int]]:
    """The sealed segments of the folder: for each number, boot and first seq of each copy."""
    sealed = {
        key: copy.segment.first
        for key, copy in store.damage.copies(board).items()
        if copy.grown is None
    }
    sealed |= {each.key: each.scan.header.first for each in store.waiting() if not each.growing}
    mine: dict[int, dict[int, int]] = {}
    for (whose, boot, number), first in sealed.items():
        if whose == board and number in there:
            mine.setdefault(number, {})[boot] = first
    return mine


def _certain(found: Plan, mine: dict[int, dict[int, int]]) -> set[int]:
    """The numbers whose segment in the folder is the one that the ring has now.

    A board that was emptied numbers its segments anew, so the folder may have a number of several
    rings. Headers are requested from the newest on. A known header vouches for the segment
    before it: that one is of the same boot, or of the previous boot if the known one begins its
    boot. All others are requested themselves.
    """
    certain: set[int] = set()
    boot = None  # that vouches for this number
    for number in sorted(mine, reverse=True):
        if number + 1 not in certain or boot not in mine[number]:
            boot = found.boot(number)
        if boot in mine[number]:
            certain.add(number)
            boot -= mine[number][boot] == 0
    return certain
