"""Which anchors to trust if boots contradict their order: each is compared with all others."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import TypeVar

from .clocks import Clocks, Key
from .harvest import Taken

NTP, HARVESTER, TOLD = 4, 3, 2
Any = TypeVar("Any")


def agreed(first: dict[Key, Taken]) -> set[Key]:
    """One kind after the other, the better one first."""
    fit: set[Key] = set()
    for quality in (NTP, HARVESTER, TOLD):
        fit |= _more(first, fit, quality)
    return fit


def _more(first: dict[Key, Taken], fit: set[Key], quality: int) -> set[Key]:
    """The anchors of this kind that contradict neither better ones nor each other."""
    known, found = Clocks(first, fit), set[Key]()
    for life in known.lives():
        here = {boot: known.anchors_of(*boot, quality) for boot in life}
        if any(known.believed(*boot) for boot in life):
            here = {boot: [k for k in keys if known.fits(k)] for boot, keys in here.items()}
        more = Clocks(first, fit.union(*here.values()))
        new = [b for b in life if here[b] and more.believed(*b)]
        found.update(k for boot in settled(new, more.agree) for k in here[boot])
    return found


def settled(there: list[Any], agree: Callable[[Any, Any], bool]) -> set[Any]:
    """Those that agree with each other one, as they follow each other."""
    wrong = {one for pair in combinations(there, 2) if not agree(*pair) for one in pair}
    return {*there} - wrong
