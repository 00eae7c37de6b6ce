"""The losses of one board: which records are missing, and why. Without Spark.

A hole is a run of numbers (seq) that no record has. GAP records and frames in quarantine explain
holes; they also show losses behind the last record of a boot, and boots without any record.
Consecutive boots of which nothing is known are one loss, however many they are: a board whose ring
was made anew continues with a random boot.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .decode import UNREAD
from .harvest import segments as s

if TYPE_CHECKING:
    from .silver import Records, Times

NO_SEGMENT = 0xFFFFFFFF
END = 0xFFFFFFFF  # as a count or a last number: nobody knows
NAMED = 1000  # segments of which nothing came, of a hole at most
Row = dict[str, Any]


class Told(NamedTuple):
    """Records of a boot that somebody says are lost."""

    first: int
    last: int  # END: to the end of the boot, or until there are records again
    reason: str
    segment: int  # or NO_SEGMENT


def loss_rows(records: Records, times: Times, bad: list[Row]) -> Iterator[Row]:
    """Rows of silver/losses; `bad` are those of quarantine. When: between the records around a
    loss, or behind the last of its boot."""
    _, ends = records.runs(records.boot)
    last = {int(records.boot[i]): i for i in ends}
    told = _told(records, {boot: int(records.seq[i]) for boot, i in last.items()}, bad)
    behind = {(int(records.boot[i]), int(records.hole[i])): i
              for i in np.flatnonzero(records.hole >= 0).tolist()}  # fmt: skip
    holes: dict[int, dict[int, int]] = defaultdict(dict)  # by boot: the last of each by its first
    for (boot, first), i in behind.items():
        holes[boot][first] = int(records.seq[i]) - 1
    for boot, some in told.items():
        first = int(records.seq[last[boot]]) + 1 if boot in last else 0
        ends_at = [one.last for one in some if one.last != END or one.first >= first]
        if (most := max(ends_at, default=-1)) >= first:
            holes[boot][first] = most
    boots = dict.fromkeys(holes, 1)
    if known := last.keys() | told.keys():
        there = sorted({min(known) - 1, *last, *holes, max(known)})
        boots |= {a + 1: b - a - 1 for a, b in pairwise(there) if b - a > 1}
    held: dict[int, set[int]] = defaultdict(set)  # that a harvest has, though they are not read
    for row in bad:
        held[row["boot"]].add(row["segment"])
    for boot, count in boots.items():
        telling = _telling(told.get(boot, set()))
        for begin, end, why in _explained(holes.get(boot) or {0: END}, telling):
            after = before = None
            gone = {one.segment for one in why} - {NO_SEGMENT}
            if (place := behind.get((boot, begin))) is not None:
                before = times.at(place)
                if not records.first[place]:
                    after = times.at(place - 1)
                    gone |= {*range(int(records.segment[place - 1]) + 1,
                                    int(records.segment[place]))[:NAMED]}  # fmt: skip
            elif boot in last:
                after = times.at(last[boot])
            yield {
                "boot": boot, "boots": count, "first_seq": begin, "after": after, "before": before,
                "last_seq": None if end == END else end,
                "lost": None if end == END else end - begin + 1,
                "reasons": sorted({one.reason for one in why}) or ["unexplained"],
                "segments": sorted(gone - held[boot]),
            }  # fmt: skip


def _told(records: Records, lasts: dict[int, int], bad: list[Row]) -> dict[int, set[Told]]:
    """By boot."""
    found: dict[int, set[Told]] = defaultdict(set)
    for i in np.flatnonzero(records.type == s.GAP).tolist():
        boot, first, count, segment = s.LOSS.unpack(records.rows.column("payload")[i].as_py())
        flags = int(records.flags[i])
        last = END if count == END else first + count - 1
        found[boot].add(Told(first, last, s.GAPS.get(flags, f"reason {flags}"), segment))
    reach = {boot: max((one.last for one in some if one.last != END), default=-1)
             for boot, some in found.items()}  # fmt: skip
    for row in (row for row in bad if row["first_seq"] is not None):
        boot, first, last = row["boot"], row["first_seq"], row["last_seq"]
        why = UNREAD if row["reason"].startswith(UNREAD) else "quarantined"
        if last is None and first <= max(lasts.get(boot, -1), reach.get(boot, -1)):
            last = first
        if last is not None or boot not in lasts or row["reason"] != s.TORN:
            found[boot].add(Told(first, END if last is None else last, why, NO_SEGMENT))
    return found


def _telling(some: set[Told]) -> list[Told]:
    """Without those that say nothing. Of each kind without an end the first tells of all that
    the others do."""
    kinds = {one[2:]: one for one in sorted(some, reverse=True) if one.last == END}
    return [*(one for one in some if one.first <= one.last != END), *kinds.values()]


def _explained(
    holes: dict[int, int], told: Sequence[Told]
) -> Iterator[tuple[int, int, set[Told]]]:
    """The holes of one boot, which do not overlap, each with all that is told of it."""
    firsts = sorted(holes)
    lasts = [holes[first] for first in firsts]
    fitting: list[set[Told]] = [set() for _ in firsts]
    for one in told:
        for some in fitting[bisect_left(lasts, one.first) : bisect_right(firsts, one.last)]:
            some.add(one)
    yield from zip(firsts, lasts, fitting, strict=True)
