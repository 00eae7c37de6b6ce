"""A season: boots, pauses, power cuts and harvests of several boards, drawn from a seed."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from slotmq_telemetry.season import writer as w
from slotmq_telemetry.season.board import (
    DAY,
    EVENT,
    HARVESTER,
    HOUR,
    MESSAGE,
    NTP,
    RTC,
    TOLD,
    Board,
    Make,
)
from slotmq_telemetry.season.harvest import Harvest

from .payload import Payload, draw

START = 1_772_323_200_000  # 1 March 2026
OTHERS = 0, 5, 255  # kinds of anchors that are none
# By how much phones and laptops are wrong: no two of these are a number of wraps apart.
WRONG = 5_000, 90 * 60_000, 27 * HOUR, 5 * DAY, 40 * DAY, 300 * DAY
HAS_ORIGIN = 16


@dataclass(frozen=True)
class Knobs:
    """How a season goes; each from 0 upwards."""

    boards: int = 2
    boots: int = 3
    steps: int = 30  # in a boot
    segment_size: int = 512
    ring: int = 4
    stops: bool = False
    silences: float = 0.05  # long ones: with a few the ticks wrap
    floods: float = 0.2  # of those: so much is recorded that the ring is overwritten
    cuts: float = 0.7
    fails: float = 0.03
    anchors: float = 0.08
    wrong_clocks: float = 0.3
    own_clocks: float = 0.4  # which a boot begins with
    harvests: float = 0.04
    clears: float = 0.3
    repeats: float = 0.4
    damage: float = 0.15
    bridges: float = 0.3
    renewals: float = 0.1  # of a ring, before a boot
    compacts: float = 0.2


@dataclass
class Season:
    """What has happened: boards, the harvest folder, and what the truth is made from."""

    place: str  # the first level of its topics
    knobs: Knobs
    random: Random
    harvest: Harvest
    boards: list[Board] = field(default_factory=list)
    payloads: dict[bytes, Payload] = field(default_factory=dict)
    sent: list[tuple[int, str, int, int, str, bytes]] = field(default_factory=list)
    copies: list[tuple[list[w.Segment], int]] = field(default_factory=list)

    @property
    def false_anchors(self) -> set[tuple[str, int, int]]:
        """Those of clocks that were wrong, told on or not."""
        return {key for board in self.boards for key in board.false_anchors}


def season(folder: Path, seed: int, knobs: Knobs, lines: int = 0) -> Season:
    """Live through a season; its bundles are in `folder` afterwards, behind `lines` others."""
    random = Random(seed)
    made = Season(f"site{seed}", knobs, random, Harvest(folder, knobs.segment_size, random))
    made.harvest.lines = lines
    for _ in range(knobs.boards):
        make = Make(
            knobs.segment_size, knobs.ring, knobs.stops, random.choice((1, 3, 8)), knobs.fails
        )
        name = bytes((0x28, 0x6F)) + random.randbytes(random.choice((4, 6)))
        _live(made, Board(name, make, random.randint(-80, 80), random))
    _repeat(made)
    made.harvest.save()
    if random.random() < knobs.compacts:
        made.harvest.compact()
    return made


def _live(season: Season, board: Board) -> None:
    random, knobs = season.random, season.knobs
    season.boards.append(board)
    at = START + random.randrange(random.choice((60_000, DAY)))
    for boot in range(knobs.boots):
        if random.random() < knobs.renewals:
            board.renew()
        board.start(at)
        board.put(at, EVENT, 1, bytes((random.randrange(6),)))
        if random.random() < knobs.own_clocks:
            _own_clock(season, board, at)
        for step in range(random.randrange(knobs.steps + 1)):
            late = at + _pause(random, knobs)
            if random.random() < knobs.bridges:
                at = _bridge(season, board, at, late)
            if late - at > DAY and random.random() < knobs.floods:
                _flood(season, board, at, late)
            board.wait(late)
            at = late
            _step(season, board, at, boot * 1000 + step)
        if random.random() < knobs.cuts:
            board.cut()
        else:
            board.finish()
        at += random.randrange(1, 10 * HOUR)
    _harvest(season, board, at)


def _pause(random: Random, knobs: Knobs) -> int:
    if random.random() < knobs.silences:
        return random.randrange(2 * DAY, 40 * DAY)
    return random.choice((0, 1, 40, 1000, 60_000, random.randrange(HOUR)))


def _step(season: Season, board: Board, at: int, count: int) -> None:
    random, knobs = season.random, season.knobs
    chance = random.random()
    if chance < knobs.anchors:
        _anchor(season, board, at)
    elif chance < knobs.anchors + knobs.harvests:
        _harvest(season, board, at)
        if random.random() < knobs.clears:
            board.clear(at)
    elif chance < knobs.anchors + knobs.harvests + 0.15:
        _event(board, at, random)
    else:
        _message(season, board, at, count)


def _message(season: Season, board: Board, at: int, count: int) -> None:
    """Now and then one comes again, or its publisher counts backwards."""
    random = season.random
    if board.latest is None or random.random() < 0.9:
        back = random.randrange(40) if random.random() < 0.1 else 0
        payload = draw(random, max(0, count - back))
        season.payloads[payload.data] = payload
        topic = f"{season.place}/{random.randrange(2)}/t{random.randrange(3)}"
        board.latest = payload.data, f"sensor-{random.randrange(4)}", topic
        flags = random.choice((0, 1, 2, 4, 5, 9, 10))
    else:
        flags = random.choice((2, 10, 10))
    found = board.put(at, MESSAGE, flags, *board.latest)
    season.sent.append((at, *found, board.latest[2], board.latest[0]))


def _event(board: Board, at: int, random: Random) -> None:
    client = f"sensor-{random.randrange(4)}"
    reason, heap = bytes((random.choice((0, 8)),)), w.le(random.choice((5000, 20480)), 4)
    code, detail, who = random.choice(
        (
            (2, b"\x04", client), (3, reason, client), (4, b"", client), (5, b"", client),
            (6, b"site/#", client), (7, b"queued", None), (8, heap, None),
            (9, b"site/#", client), (77, b"?", None),
        )
    )  # fmt: skip
    for _ in range(random.choice((1, 1, 1, 6))):
        board.put(at, EVENT, code, detail, who)


def _anchor(season: Season, board: Board, at: int) -> None:
    """Somebody says what time it is, rightly or not."""
    random = season.random
    error = random.choice((5, 40, 1500))
    if random.random() >= season.knobs.wrong_clocks:
        quality = random.choice((RTC, TOLD, HARVESTER, NTP))
        board.tell(at, quality, at + random.randint(-error, error), error, is_false=False)
    elif random.random() < 0.4:
        _own_clock(season, board, at)
    elif random.random() < 0.6:
        wall = at + random.choice((-1, 1)) * random.choice(WRONG)
        quality = random.choice((TOLD, TOLD, TOLD, HARVESTER, random.choice(OTHERS)))
        board.tell(at, quality, wall, error, is_false=True)
    else:
        wall = random.choice((978_307_200_000, 1_609_459_200_000, at + 9000 * DAY)) + at % DAY
        board.tell(at, random.choice((RTC, TOLD)), wall, error, is_false=True)


def _own_clock(season: Season, board: Board, at: int) -> None:
    """The board's own clock; if it is wrong, nobody can see that by it alone."""
    random = season.random
    if random.random() >= season.knobs.wrong_clocks:
        board.tell(at, RTC, at + random.randint(-60_000, 60_000), 60_000, is_false=False)
    else:
        off = random.randrange(HOUR, random.choice((DAY, 10 * DAY, 120 * DAY)))
        wall = at + random.choice((-off, off))
        board.tell(at, RTC, wall, 60_000, is_false=True)


def _bridge(season: Season, board: Board, since: int, until: int) -> int:
    """Messages of other boards in that time, published here too: with their origin, or not.
    Returns when the last one was."""
    random, now = season.random, since
    for at, name, boot, seq, topic, data in sorted(season.sent):
        if not since <= at < until - 2000 or name == board.hex or random.random() < 0.5:
            continue
        origin = bytes.fromhex(name) + w.le(boot, 4) + w.le(seq, 4)
        flags, head = random.choice(((HAS_ORIGIN, origin), (0, b"")))
        now = max(now, at + random.randrange(2000))
        board.wait(now)
        board.put(now, MESSAGE, flags, head + data, "bridge", topic)
    return now


def _flood(season: Season, board: Board, since: int, until: int) -> None:
    """Somebody comes by before, perhaps; what is recorded then is overwritten many times."""
    random, knobs = season.random, season.knobs
    if random.random() < 5 * knobs.anchors:
        _anchor(season, board, since)
    if random.random() < 0.7:
        _harvest(season, board, since)
    times = sorted(random.randrange(since, until) for _ in range(3 * min(knobs.ring, 16)))
    for at in times:
        board.wait(at)
        board.put(at, EVENT, 77, b"?" * (knobs.segment_size // 2))
    if random.random() < 5 * knobs.anchors:
        board.wait(until)
        _anchor(season, board, until)


def _harvest(season: Season, board: Board, at: int) -> None:
    copies = board.copies()
    season.copies.append((copies, at))
    season.harvest.bundle(copies, at, season.knobs.damage)


def _repeat(season: Season) -> None:
    """Some harvests are in the folder twice, or together in one bundle."""
    random = season.random
    for copies, at in list(season.copies):
        if random.random() < season.knobs.repeats:
            season.harvest.bundle(copies, at + random.randrange(DAY), season.knobs.damage)
    if random.random() < season.knobs.repeats:
        every = [segment for copies, _ in season.copies for segment in copies]
        season.harvest.bundle(every, max(at for _, at in season.copies) + DAY)
