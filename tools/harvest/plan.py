"""Which segments of a board's ring a folder may not have, or not all of, and which of them the
board may still be writing.

A segment is sealed only if a later one answered, of the same start or a later one: what the head
says of the newest may be anybody's.
"""

from dataclasses import dataclass

from .headers import MOST, Asked
from .network import Gone, Head, Ring
from .segments import Header, NotASegment
from .store import Store


@dataclass(frozen=True)
class Plan:
    """Of one board: what is to be fetched."""

    head: Head
    asked: Asked
    last: Header | None  # the newest that is a segment
    numbers: list[int]
    told: tuple[str, ...] = ()  # what is wrong with the head
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
        return Plan(head, asked, None, [], (f"board {head.board}: {none}",), empty=True)
    told = []
    if newest < head.segment:
        told.append(f"its newest segment is {newest}, its head says {head.segment}")
    there = range(head.first, newest + 1)
    store.damage.doubt(head.board, there)
    certain = _certain(asked, head, _sealed(store, head.board, there))
    numbers = [number for number in there if number not in certain]
    if count := asked.beginning(head, numbers):
        none = f"{numbers[0]} to {numbers[count - 1]}"
        told.append(f"its head tells of segments {none}, of which {count:,} are not there")
    lines = tuple(f"board {head.board}: {each}" for each in told)
    return Plan(head, asked, _last(asked, there), numbers[count:], lines)


def _last(asked: Asked, there: range) -> Header | None:
    for number in reversed(there):
        try:
            return asked.header(number)
        except (Gone, NotASegment):
            pass
    return None


def _sealed(store: Store, board: str, there: range) -> dict[int, dict[int, int]]:
    """By its number, of which boots the folder has a segment whole, and the first seq of each."""
    sealed = {
        key: copy.line.segments[copy.index][3]
        for key, copy in store.damage.copies().items()
        if copy.grown is None
    }
    sealed |= {each.key: each.scan.header.first for each in store.waiting() if not each.growing}
    mine: dict[int, dict[int, int]] = {}
    for (whose, boot, number), first in sealed.items():
        if whose == board and number in there:
            mine.setdefault(number, {})[boot] = first
    return mine


def _certain(asked: Asked, head: Head, mine: dict[int, dict[int, int]]) -> set[int]:
    """Of the segments that the folder has (of which boots?) those that are the ring's.

    A board that was emptied counts its segments anew, and the folder may have the same number
    of several rings. So headers are looked at, from the newest on; one that is known vouches
    for the one before it, which is of the same boot, or of the boot before if its own boot
    begins with it. What is neither is looked at itself, until so many are missing that the
    head is believed no more.
    """
    certain: set[int] = set()
    boot = None  # of the next, if the one behind it is certain
    missed = 0
    for number in sorted(mine, reverse=True):
        if number + 1 not in certain or boot not in mine[number]:
            boot = _boot(asked, number)
            missed = 0 if asked.has(number) else missed + 1
            if missed >= MOST and not asked.has(head.first):
                break
        if boot in mine[number]:
            certain.add(number)
            boot -= mine[number][boot] == 0
    return certain


def _boot(asked: Asked, number: int) -> int | None:
    try:
        return asked.header(number).boot
    except (Gone, NotASegment):
        return None
