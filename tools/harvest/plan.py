"""What to fetch from a board's ring over the network: the segments that the folder lacks or has
in part, and whether the board may still be writing them.

A segment counts as sealed only if the board has shown the header of a later one, of the same boot
or a later boot. The head does not decide that, since any client can publish a head.
"""

from dataclasses import dataclass

from .headers import MOST, Headers
from .network import Gone, Head, Ring
from .segments import Header, NotASegment
from .store import Store


@dataclass(frozen=True)
class Plan:
    """What to fetch from one board."""

    head: Head
    headers: Headers
    last: Header | None  # of the newest segment that has one
    numbers: list[int]
    complaints: tuple[str, ...] = ()  # what is wrong with the head
    empty: bool = False  # does no segment exist that the head names?

    def grows(self, segment: Header) -> bool:
        """May the board write more of it?"""
        last = self.last
        return last is None or segment.segment >= last.segment or segment.boot > last.boot

    def length(self, segment: Header) -> int | None:
        """Bytes of a growing segment on flash, if the head names this segment."""
        return self.head.length if segment.segment == self.head.segment else None


def plan(ring: Ring, head: Head, store: Store) -> Plan:
    """Compare the ring with the folder; what the folder certainly has is left out."""
    headers = Headers(ring, head.board)
    newest = headers.newest(head)
    if newest is None:
        none = f"its head names segments {head.first} to {head.segment}, and none exists"
        return Plan(head, headers, None, [], (f"board {head.board}: {none}",), empty=True)
    complaints = []
    if newest < head.segment:
        complaints.append(f"its newest segment is {newest}, its head says {head.segment}")
    there = range(head.first, newest + 1)
    store.damage.doubt(head.board, there)
    certain = _certain(headers, head, _sealed(store, head.board, there))
    numbers = [number for number in there if number not in certain]
    if count := headers.beginning(head, numbers):
        none = f"{numbers[0]} to {numbers[count - 1]}"
        complaints.append(f"its head names segments {none}, of which {count:,} do not exist")
    lines = tuple(f"board {head.board}: {each}" for each in complaints)
    return Plan(head, headers, _last(headers, there), numbers[count:], lines)


def _last(headers: Headers, there: range) -> Header | None:
    for number in reversed(there):
        try:
            return headers.header(number)
        except (Gone, NotASegment):
            pass
    return None


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


def _certain(headers: Headers, head: Head, mine: dict[int, dict[int, int]]) -> set[int]:
    """The numbers whose segment in the folder is the one that the ring has now.

    A board that was emptied numbers its segments anew, so the folder may have a number of several
    rings. Headers are requested from the newest on. A known header vouches for the segment
    before it: that one is of the same boot, or of the previous boot if the known one begins its
    boot. All others are requested themselves, until MOST of them do not exist.
    """
    certain: set[int] = set()
    boot = None  # that vouches for this number
    missed = 0
    for number in sorted(mine, reverse=True):
        if number + 1 not in certain or boot not in mine[number]:
            boot = _boot(headers, number)
            missed = 0 if headers.has(number) else missed + 1
            if missed >= MOST and not headers.has(head.first):
                break
        if boot in mine[number]:
            certain.add(number)
            boot -= mine[number][boot] == 0
    return certain


def _boot(headers: Headers, number: int) -> int | None:
    try:
        return headers.header(number).boot
    except (Gone, NotASegment):
        return None
