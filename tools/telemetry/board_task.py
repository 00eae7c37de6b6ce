"""From a board's records to its boots with their anchors, and to its losses. own_clock.py and
losses.py do the work."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..harvest import segments as s
from .anchors import NTP, Anchor
from .clock import Boot, Stretch
from .corrections import Corrections
from .decode import UNREAD
from .losses import NO_SEGMENT, QUARANTINED, TO_THE_END, Hole, Told, losses
from .own_clock import Believed

if TYPE_CHECKING:
    from .silver import Records, Times

CORRECTED = "corrected"  # quality of an anchor, by clocks.toml
Row = dict[str, Any]


def boots(records: Records, corrections: Corrections) -> list[Boot]:
    """All of which there are records, in order."""
    anchors: dict[tuple[int, int], list[Anchor]] = defaultdict(list)
    for i in np.flatnonzero(records.type == s.ANCHOR).tolist():
        seconds, ms, error = s.TIME.unpack(records.payload(i))
        boot, stretch = int(records.boot[i]), int(records.stretch[i])
        quality = NTP if boot in corrections else int(records.flags[i])
        wall = seconds * 1000 + ms + corrections.get(boot, 0)
        about = quality, wall, error, records.harvested_ms(i), stretch
        anchors[boot, stretch].append(Anchor(int(records.seq[i]), int(records.uptime[i]), *about))
    stretches: dict[int, list[Stretch]] = defaultdict(list)
    for first, last in zip(*records.runs(records.boot, records.stretch), strict=True):
        boot = int(records.boot[first])
        ends = int(records.uptime[first]), int(records.uptime[last]), records.harvested_ms(last)
        stretches[boot].append(Stretch(*ends, tuple(anchors[boot, len(stretches[boot])])))
    return [Boot(boot, tuple(some)) for boot, some in stretches.items()]


def anchor_rows(boots: list[Boot], trusted: Believed, corrections: Corrections) -> Iterator[Row]:
    """Rows of silver/anchors."""
    for boot in boots:
        for anchor in boot.anchors:
            told = s.QUALITIES.get(anchor.quality, str(anchor.quality))
            yield {
                "boot": boot.boot, "seq": anchor.seq, "anchor": anchor.wall_ms * 1000,
                "quality": CORRECTED if boot.boot in corrections else told,
                "believed": (boot.boot, anchor.seq) in trusted, "error_ms": anchor.error_ms,
            }  # fmt: skip


def loss_rows(records: Records, times: Times, bad: list[Row]) -> Iterator[Row]:
    """Rows of silver/losses; `bad` are those of quarantine. When: between the records around a
    loss, or behind the last of its boot."""
    behind = {(int(records.boot[i]), int(records.hole[i])): i
              for i in np.flatnonzero(records.hole >= 0).tolist()}  # fmt: skip
    holes = [Hole(*key, int(records.seq[i]) - 1) for key, i in behind.items()]
    _, ends = records.runs(records.boot)
    last = {int(records.boot[i]): i for i in ends}
    lasts = {boot: int(records.seq[i]) for boot, i in last.items()}
    for loss in losses(holes, lasts, [*_told(records, lasts, bad)]):
        hole, after, before = loss.hole, None, None
        if (i := behind.get((hole.boot, hole.first))) is not None:
            before = times.at(i)
            after = None if records.first[i] else times.at(i - 1)
        elif hole.boot in last:
            after = times.at(last[hole.boot])
        yield {
            "boot": hole.boot, "boots": hole.boots, "first_seq": hole.first,
            "last_seq": hole.last, "after": after, "before": before, "reasons": loss.reasons,
            "segments": loss.segments,
            "lost": None if hole.last is None else hole.last - hole.first + 1,
        }  # fmt: skip


def _told(records: Records, lasts: dict[int, int], bad: list[Row]) -> Iterator[Told]:
    reach = dict(lasts)
    for i in np.flatnonzero(records.type == s.GAP).tolist():
        boot, first, count, segment = s.LOSS.unpack(records.payload(i))
        flags = int(records.flags[i])
        told = Told(boot, first, count, s.GAPS.get(flags, f"reason {flags}"), segment)
        reach[boot] = max(reach.get(boot, -1), told.last or -1)
        yield told
    for row in (row for row in bad if row["first_seq"] is not None):
        boot, first, last = row["boot"], row["first_seq"], row["last_seq"]
        why = UNREAD if row["reason"].startswith(UNREAD) else QUARANTINED
        if last is not None or first <= reach.get(boot, -1):
            count = 1 if last is None else last - first + 1
            yield Told(boot, first, count, why, NO_SEGMENT)
        elif boot not in lasts or row["reason"] != s.TORN:
            yield Told(boot, first, TO_THE_END, why, NO_SEGMENT)
