"""From a board's facts to its clocks, trusted anchors and losses. clock.py, own_clock.py and
losses.py do the work."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Any

from ..harvest import segments as s
from .anchors import NTP, Anchor
from .bounds import UNKNOWN, Bound, Piece
from .clock import Boot, Stretch
from .corrections import NONE, Corrections
from .losses import NO_SEGMENT, QUARANTINED, Hole, Loss, Told, losses
from .own_clock import clocks

CORRECTED = "corrected"  # quality of an anchor, by clocks.toml
Row = dict[str, Any]
Clock = dict[tuple[int, int, int], Piece]  # by boot, stretch and anchors that have passed


def answers(rows: list[Row], corrections: Corrections = NONE) -> list[Row]:
    """Pieces of clocks, anchors and losses, for the board whose facts these are."""
    boots = [*_boots(rows, corrections)]
    pieces, trusted = clocks(boots)
    clock = {piece.where: piece for piece in pieces}
    found = [_piece(piece) for piece in pieces]
    for boot in boots:
        for anchor in boot.anchors:
            row = _anchor(boot, anchor, (boot.boot, anchor.seq) in trusted)
            found.append(row | ({"quality": CORRECTED} if boot.boot in corrections else {}))
    return [*found, *_losses(rows, clock)]


def _of(rows: Iterable[Row], fact: str) -> list[Row]:
    return sorted((r for r in rows if r["fact"] == fact), key=lambda r: (r["boot"], r["seq"]))


def _boots(rows: list[Row], corrections: Corrections) -> Iterable[Boot]:
    anchors: dict[tuple[int, int], list[Anchor]] = {}
    for row in _of(rows, "anchor"):
        seconds, ms, error = s.TIME.unpack(row["payload"])
        quality = NTP if row["boot"] in corrections else row["flags"]
        wall = seconds * 1000 + ms + corrections.get(row["boot"], 0)
        about = quality, wall, error, row["harvested_ms"], row["stretch"]
        own = anchors.setdefault((row["boot"], row["stretch"]), [])
        own.append(Anchor(row["seq"], row["uptime_ms"], *about))
    holes: dict[int, list[Row]] = {}
    for row in _of(rows, "hole"):
        if row["stretch_before"] not in (None, row["stretch"]):
            holes.setdefault(row["boot"], []).append(row)
    for row in _of(rows, "boot"):
        boot, between = row["boot"], holes.get(row["boot"], [])
        firsts = [row["uptime_before"], *(hole["uptime_ms"] for hole in between)]
        lasts = [(hole["uptime_before"], hole["harvested_before"]) for hole in between]
        lasts.append((row["uptime_ms"], row["harvested_ms"]))
        ends = enumerate(zip(firsts, lasts, strict=True))
        yield Boot(boot, tuple(
            Stretch(first, *last, tuple(anchors.get((boot, i), ()))) for i, (first, last) in ends
        ))  # fmt: skip


def _piece(piece: Piece) -> Row:
    row: Row = {"answer": "piece", "boot": piece.boot, "stretch": piece.stretch}
    row |= {"passed": piece.passed, "wraps": piece.wraps, "clock": piece.kind}
    for side, bound in (("before", piece.before), ("after", piece.after)):
        uptime, low, high = _parts(bound)
        row |= {f"{side}_ms": uptime, f"{side}_low": low, f"{side}_high": high}
    return row


def _parts(bound: Bound | None) -> tuple[int | None, int | None, int | None]:
    return (bound.uptime, bound.low, bound.high) if bound else (None, None, None)


def _anchor(boot: Boot, anchor: Anchor, trusted: bool) -> Row:
    return {
        "answer": "anchor",
        "boot": boot.boot,
        "seq": anchor.seq,
        "believed": trusted,
        "quality": s.QUALITIES.get(anchor.quality, str(anchor.quality)),
        "anchor": anchor.wall_ms * 1000,
        "error_ms": anchor.error_ms,
    }


def _losses(rows: list[Row], clock: Clock) -> Iterable[Row]:
    boots = {row["boot"]: row for row in _of(rows, "boot")}
    behind = {(row["boot"], row["hole"]): row for row in _of(rows, "hole")}
    holes = [Hole(row["boot"], row["hole"], row["seq"] - 1) for row in behind.values()]
    lasts = {boot: row["seq"] for boot, row in boots.items()}
    for loss in losses(holes, lasts, [*_told(rows)], {*_torn(rows)}):
        after = behind.get((loss.hole.boot, loss.hole.first))
        yield _loss(loss, after, boots.get(loss.hole.boot), clock)


def _told(rows: list[Row]) -> Iterable[Told]:
    for row in _of(rows, "told"):
        boot, first, count, segment = s.LOSS.unpack(row["payload"])
        yield Told(boot, first, count, s.GAPS.get(row["flags"], f"reason {row['flags']}"), segment)
    for row in _of(rows, "bad"):
        yield Told(row["boot"], row["seq"], 1, QUARANTINED, NO_SEGMENT)


def _torn(rows: list[Row]) -> Iterable[tuple[int, int]]:
    """Boots, and the numbers behind which the rest of a segment could not be read."""
    boots = {row["boot"]: row for row in _of(rows, "boot")}
    holes: dict[int, list[Row]] = {}
    for row in _of(rows, "hole"):
        holes.setdefault(row["boot"], []).append(row)
    for boot, segment in {(row["boot"], row["segment"]) for row in rows if row["fact"] == "torn"}:
        own = holes.get(boot, [])
        at = bisect_right(own, segment, key=lambda row: row["segment"])
        if at < len(own) and own[at]["segment_before"] <= segment:
            yield boot, own[at]["hole"]
        elif boot not in boots:
            yield boot, 0
        elif boots[boot]["segment"] <= segment:
            yield boot, boots[boot]["seq"] + 1


def _loss(loss: Loss, behind: Row | None, boot: Row | None, clock: Clock) -> Row:
    """A loss, and when: between the records around it, or behind the last of its boot."""
    hole = loss.hole
    row: Row = {"answer": "loss", "boot": hole.boot, "boots": hole.boots}
    row |= {"first_seq": hole.first, "last_seq": hole.last, "after": None, "before": None}
    row |= {"reasons": loss.reasons, "segments": loss.segments}
    row["lost"] = None if hole.last is None else hole.last - hole.first + 1
    if behind is not None:
        where = hole.boot, behind["stretch"], behind["passed"]
        row["before"] = _wall(clock[where], behind["uptime_ms"])
        if behind["passed_before"] is not None:
            where = hole.boot, behind["stretch_before"], behind["passed_before"]
            row["after"] = _wall(clock[where], behind["uptime_before"])
    elif boot is not None:
        where = hole.boot, boot["stretch"], boot["passed"]
        row["after"] = _wall(clock[where], boot["uptime_ms"])
    return row


def _wall(piece: Piece, uptime: int) -> int | None:
    """In microseconds, as `silver.timed` has it."""
    both = piece.at(uptime) if piece.kind != UNKNOWN else None
    return sum(both) // 2000 if both else None
