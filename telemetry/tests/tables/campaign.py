"""Many seasons in one harvest folder, so that Spark builds the tables only once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from random import Random

from .truth import Row, Truth
from .world import Knobs, Season, season


@dataclass(eq=False)
class Campaign:
    """What is in the folder, truly."""

    folder: Path
    seasons: list[Season] = field(default_factory=list)
    lines: int = 0

    @cached_property
    def truths(self) -> list[Truth]:
        return [Truth(season) for season in self.seasons]

    def all(self, table: str) -> list[Row]:
        """The true rows of messages, bridged, events or anchors."""
        return [row for truth in self.truths for row in truth.rows(table)]

    def compact(self) -> None:
        """What tables have been made of becomes fewer bundles, in every second season."""
        for one in self.seasons[::2]:
            one.harvest.lines = self.lines
            one.harvest.compact(late=True)
            self.lines = one.harvest.lines


# Boards that are near to each other and know the time: what is bridged can be recognised.
VILLAGE = Knobs(
    boards=3, boots=2, steps=60, segment_size=2048, ring=100, silences=0.01, cuts=0.5, fails=0,
    anchors=0.15, wrong_clocks=0.1, repeats=0.5, damage=0.05, bridges=0.5,
    renewals=0,
)  # fmt: skip


def knobs(random: Random) -> Knobs:
    """Any kind of season, the odd ones too."""
    if random.random() < 0.2:
        return VILLAGE
    return Knobs(
        boards=random.choice((1, 2, 3, 3)),
        boots=random.choice((1, 3, 5)),
        steps=random.choice((0, 5, 30, 60)),
        segment_size=random.choice((512, 768, 2048)),
        ring=random.choice((2, 8, 100)),
        stops=random.random() < 0.3,
        silences=random.choice((0, 0.03, 0.2)),
        floods=random.choice((0, 0.3, 1)),
        cuts=random.choice((0, 0.7, 1)),
        fails=random.choice((0, 0.05)),
        anchors=random.choice((0, 0.05, 0.2)),
        wrong_clocks=random.choice((0, 0.3, 1)),
        harvests=random.choice((0.04, 0.15)),
        repeats=random.choice((0, 0.4, 1)),
        damage=random.choice((0, 0.15, 0.5)),
        bridges=random.choice((0, 0.5)),
        renewals=random.choice((0, 0, 0.2, 0.5)),
        compacts=random.choice((0, 0, 1)),
    )


def run(folder: Path, seeds: Iterable[int]) -> Campaign:
    """A season for each seed, one behind the other."""
    return live(folder, [(knobs(Random(seed)), seed) for seed in seeds])


def live(folder: Path, seasons: Iterable[tuple[Knobs, int]]) -> Campaign:
    """These seasons, each with its seed."""
    made = Campaign(folder)
    for kind, seed in seasons:
        made.seasons.append(season(folder, seed, kind, made.lines))
        made.lines = made.seasons[-1].harvest.lines
    return made
