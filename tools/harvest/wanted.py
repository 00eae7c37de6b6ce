"""Which segments of a board's ring a folder may not have, or not all of, and which of them the
board may still be writing.

A segment is sealed only if a later one answered, of the same start or a later one: what the head
says of the newest may be anybody's.
"""

from dataclasses import dataclass

from .asked import Asked
from .network import Gone, Head, Ring
from .segments import Header, NotASegment
from .store import Store

_NEAR = 64  # starts; a ring that is made anew counts on from a number drawn by lot of 2**28


@dataclass(frozen=True)
class Plan:
    """Of one board: what is to be fetched."""

    head: Head
    asked: Asked
    last: Header | None  # the newest that is a segment
    numbers: list[int]
    told: str | None = None  # what is wrong with the head
    empty: bool = False  # is nothing there of what it tells?

    def grows(self, segment: Header) -> bool:
        """May the board write more of it?"""
        last = self.last
        return last is None or segment.segment >= last.segment or segment.boot > last.boot

    def length(self, segment: Header) -> int | None:
        """How much of a segment that grows is on flash, if the head says it of this one."""
        return self.head.length if segment.segment == self.head.segment else None


def plan(ring: Ring, head: Head, store: Store) -> Plan:
    """What the folder has for certain is left out."""
    asked = Asked(ring, head.board)
    newest = asked.newest(head)
    if newest is None:
        none = f"none of its segments {head.first} to {head.segment} is there"
        return Plan(head, asked, None, [], f"board {head.board}: {none}", empty=True)
    told = None
    if newest < head.segment:
        told = f"board {head.board}: its newest segment is {newest}, its head says {head.segment}"
    there = range(head.first, newest + 1)
    store.damage.doubt(head.board, there)
    certain = _certain(asked, _sealed(store, head.board, there))
    numbers = [number for number in there if number not in certain]
    return Plan(head, asked, _last(asked, there), numbers, told)


def _last(asked: Asked, there: range) -> Header | None:
    for number in reversed(there):
        try:
            return asked.header(number)
        except (Gone, NotASegment):
            pass
    return None


def _sealed(store: Store, board: str, there: range) -> dict[int, set[int]]:
    """The boots of which the folder has a segment whole, by its number."""
    known = store.damage.copies()
    sealed = {key for key, copy in known.items() if copy.grown is None}
    sealed |= {each.key for each in store.waiting() if not each.growing}
    mine: dict[int, set[int]] = {}
    for whose, boot, number in sealed:
        if whose == board and number in there:
            mine.setdefault(number, set()).add(boot)
    return mine


def _certain(asked: Asked, mine: dict[int, set[int]]) -> set[int]:
    """Of the segments that the folder has (of which boots?) those that are the ring's.

    A board that was emptied counts its segments anew, and the folder may have the same number
    of several rings. So headers are looked at, from the newest on; one that is known vouches
    for those before it whose boots are not far from its own.
    """
    certain: set[int] = set()
    for number in sorted(mine, reverse=True):
        if number in certain:
            continue
        try:
            boot = asked.header(number).boot
        except (Gone, NotASegment):
            continue
        if boot in mine[number]:
            certain |= {
                each for each, boots in mine.items()
                if each <= number and any(0 <= boot - one <= _NEAR for one in boots)
            }  # fmt: skip
    return certain
