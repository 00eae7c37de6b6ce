"""What boards' own clocks add to the known times: compares each run of records that has an own
clock with all others of its boot, and each boot with all others.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import pairwise, product

from .boot_order import agreed, settled
from .clocks import FAR, Clocks, Key
from .harvest import Taken

_RTC = 1
Run = tuple[str, int, int]  # board, boot, and which one of it


class AllClocks(Clocks):
    """With boards' own clocks."""

    def __init__(self, first: dict[Key, Taken]) -> None:
        super().__init__(first, agreed(first))

    def wall(self, key: Key) -> tuple[int, int, str] | None:
        """Estimate, error in µs, and how it is known."""
        low, high, how = self._bounds(key)
        if low is None or high is None or low > high or how == "unknown":
            return None
        return (low + high) // 2000, (high - low) // 2000 + 2, how

    def _bounds(self, key: Key) -> tuple[int | None, int | None, str]:
        own = self.own(*key[:2], self._run_of[key])
        if not own:
            return self.known(key)
        ranges = [self._range(anchor, self._entries[key].uptime) for anchor in own]
        return max(low for low, _ in ranges), min(high for _, high in ranges), "own"

    def is_believed(self, key: Key) -> bool:
        """Whether an anchor is."""
        run = self._run_of[key]
        if not self.is_told(key, _RTC):
            return key in self.believed(*key[:2])
        if self.known(key)[2] == "anchored":
            return bool(self.agreeing([key])) and self.fits(key)
        return key in self.own(*key[:2], run)

    @cache  # noqa: B019
    def _alone(self, board: str, boot: int, run: int) -> list[Key]:
        keys = self._runs[board, boot][run]
        if self.known(keys[0])[2] == "anchored":
            return []
        return self.agreeing([k for k in keys if self.is_told(k, _RTC) and self.fits(k)])

    @cache  # noqa: B019
    def own(self, board: str, boot: int, run: int) -> list[Key]:
        """What a run's time is known by, if by nothing but the board's own clock."""
        here = board, boot, run
        return self._alone(*here) if here in self._right(board, boot) else []

    @cache  # noqa: B019
    def _right(self, board: str, boot: int) -> set[Run]:
        """The runs of its life that have such a clock, as far as they agree."""
        boots: dict[int, list[Run]] = {}
        for other, i in sorted(self._around(board, boot)):
            if self._alone(board, other, i):
                boots.setdefault(other, []).append((board, other, i))
        right = {b: settled(runs, self._follow) for b, runs in boots.items()}

        def agree(one: int, other: int) -> bool:
            return all(self._follow(a, b) for a, b in product(right[one], right[other]))

        return {run for b in settled([b for b in right if right[b]], agree) for run in right[b]}

    def _follow(self, one: Run, other: Run) -> bool:
        """By their clocks, what was recorded between them has room."""
        last, first = self._runs[one[:2]][one[2]][-1], self._runs[other[:2]][other[2]][0]
        return self._over(*one) + self.apart(last, first) <= self._begun(*other)

    def sources(self, key: Key) -> tuple[set[Key], set[Key], set[Key]]:
        """The anchors that the bounds of a record follow from: those that are wrong either way
        with them, and those of the boots in front and behind, before and after which it was."""
        board, boot, _ = key
        made, run = {*self.believed(board, boot)}, self._run_of[key]
        if self.own(board, boot, run) or run in self._anchored(board, boot):
            return {*self.own(board, boot, run)} or made, set(), set()
        others = sorted({other for other, _ in self._around(board, boot)})
        known = [other for other in others if self.believed(board, other)]
        before = {
            key for b in [b for b in known if b < boot][-1:] for key in self.believed(board, b)
        }
        behind = {
            key for b in [b for b in known if b > boot][:1] for key in self.believed(board, b)
        }
        if all(self._run_of[key] for key in behind):
            made |= behind  # how many wraps before them do not show is worked out by its harvests
        return made, before, behind

    def _around(self, board: str, boot: int) -> Iterator[tuple[int, int]]:
        """All runs of one life."""
        boots = self._boots[board]
        for other in boots:
            between = [b for b in boots if min(boot, other) <= b <= max(boot, other)]
            if all(b - a <= FAR for a, b in pairwise(between)):
                yield from ((other, i) for i in range(len(self._runs[board, other])))

    def _over(self, board: str, boot: int, run: int) -> int:
        last = self._entries[self._runs[board, boot][run][-1]].uptime
        return max(self._range(key, last)[0] for key in self._alone(board, boot, run))

    def _begun(self, board: str, boot: int, run: int) -> int:
        first = self._entries[self._runs[board, boot][run][0]].uptime
        return min(self._range(key, first)[1] for key in self._alone(board, boot, run))
