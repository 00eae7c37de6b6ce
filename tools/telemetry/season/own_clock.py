"""What boards' own clocks add to the known times: compares each run of records that has an own
clock with all others of its boot, and each boot with all others.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import pairwise

from .boot_order import agreed, settled
from .clocks import FAR, Clocks, Key
from .harvest import Taken

_RTC = 1
_KINDS = 1, 2, 3, 4
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
        return max(low for low, _ in ranges), min(high for _, high in ranges), self._kind(key)

    def is_believed(self, key: Key) -> bool:
        """Whether an anchor is."""
        run = self._run_of[key]
        if not self.is_told(key, _RTC):
            return key in self.believed(*key[:2])
        if self.known(key)[2] == "anchored":
            return bool(self.agreeing([key])) and self.fits(key)
        return key in self.own(*key[:2], run) and self._kind(key) == "own"

    def _kind(self, key: Key) -> str:
        """Of a time that is taken as it stands."""
        here = (*key[:2], self._run_of[key])
        return "own" if here in self._right(*key[:2]) else "suspect"

    @cache  # noqa: B019
    def _alone(self, board: str, boot: int, run: int) -> list[Key]:
        keys = self._runs[board, boot][run]
        if self.known(keys[0])[2] == "anchored":
            return []
        return self.agreeing([
            k for k in keys if any(self.is_told(k, q) for q in _KINDS) and self.fits(k)
        ])  # fmt: skip

    def own(self, board: str, boot: int, run: int) -> list[Key]:
        """What a run's time is known by, if by nothing better than what it says itself."""
        return self._alone(board, boot, run)

    @cache  # noqa: B019
    def _right(self, board: str, boot: int) -> set[Run]:
        """The runs of its life that go by the board's own clock, and contradict no other one."""
        runs = [(board, other, i) for other, i in sorted(self._around(board, boot))]
        return settled([run for run in runs if self._is_rtc(*run)], self._follow)

    def _is_rtc(self, board: str, boot: int, run: int) -> bool:
        alone = self._alone(board, boot, run)
        return bool(alone) and all(self.is_told(key, _RTC) for key in alone)

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
