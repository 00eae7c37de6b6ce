"""What can be known about the time of each record, calculated the simple and slow way.

It begins with what is true. Of each stretch (records of a boot with at most three numbers missing
in a row) it asks how many wraps more or fewer than the true ones the harvest could be taken for; a
true number that is the only one must be found, and where there are others the bounds must hold
for all of them. Every anchor is looked at for every record. Which of them boots go by is in
boot_order.py, boards' own clocks are in own_clock.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import groupby, pairwise

from .harvest import Taken
from .writer import Entry

Key = tuple[str, int, int]
_PERIOD = 2**30  # ms
_SLACK = 60_000  # ms, of a harvester's clock
_ROUNDED = 2
FAR = 10_000  # boots; nobody knows which of two lives was earlier
_SINCE = 1_704_067_200_000


def _number(data: bytes) -> int:
    return int.from_bytes(data, "little")


def told(entry: Entry) -> tuple[int, int]:
    """What an anchor says: when it is, and by how much that may be wrong."""
    return _time(entry.payload)


@cache
def _time(data: bytes) -> tuple[int, int]:
    return _number(data[:4]) * 1000 + _number(data[4:6]), _number(data[6:])


def _slow(passed: int) -> int:
    """The least wall time in ns for so many ms of a board."""
    return passed * (10**6 - 100)


class Clocks:
    """The boards of a season; `first` is the earliest harvest of each record, and `fit` are the
    anchors that boots may go by."""

    def __init__(self, first: dict[Key, Taken], fit: set[Key]) -> None:
        self._first, self._fit = first, fit
        self._entries = {key: taken.entry for key, taken in first.items()}
        self._boots: dict[str, list[int]] = {}
        self._runs: dict[tuple[str, int], list[list[Key]]] = {}
        for (board, boot), keys in groupby(sorted(first), key=lambda key: key[:2]):
            self._boots.setdefault(board, []).append(boot)
            runs: list[list[Key]] = []
            for key in keys:
                if not runs or key[2] > runs[-1][-1][2] + 4:
                    runs.append([])
                runs[-1].append(key)
            self._runs[board, boot] = runs
        self._run_of = {
            key: i for runs in self._runs.values() for i, run in enumerate(runs) for key in run
        }
        self._seen = dict(self._as_seen())

    def _as_seen(self) -> Iterator[tuple[Key, int]]:
        """Uptimes, if as little time passed between two records as their ticks allow."""
        for runs in self._runs.values():
            now = 0
            for run in runs:
                for key in run:
                    now += (self._entries[key].uptime - now) % _PERIOD
                    yield key, now
                for one, other in pairwise(run):
                    apart = self._entries[other].uptime - self._entries[one].uptime
                    assert apart < _PERIOD, "a board is never silent for so long"

    def uptime(self, key: Key) -> int:
        """What is known of it: as the ticks show it, and later by the wraps in holes."""
        board, boot, _ = key
        wraps = [self._wraps(board, boot, i) for i in range(len(self._runs[board, boot]))]
        certain = [least for least, most in wraps if least is not None and least == most]
        least, _ = wraps[self._run_of[key]]
        if not certain or least is None:
            return self._seen[key]
        return self._seen[key] + max(0, least - certain[0]) * _PERIOD

    def stretch(self, key: Key) -> int:
        """Which run of its boot it is in."""
        return self._run_of[key]

    def hidden(self, key: Key) -> int:
        """How many wraps were truly in the holes between its boot's first record and it."""
        board, boot, _ = key
        return self._true_wraps(board, boot, self._run_of[key]) - self._true_wraps(board, boot, 0)

    # Anchors

    @cache  # noqa: B019
    def believed(self, board: str, boot: int) -> list[Key]:
        """Those that bound others."""
        return self.agreeing([k for run in self._runs[board, boot] for k in run if k in self._fit])

    def is_told(self, key: Key, quality: int) -> bool:
        return self._entries[key].kind == 4 and self._entries[key].flags == quality

    def fits(self, key: Key) -> bool:
        """An anchor does not contradict what is known without it."""
        least, most, _ = self.known(key)
        low, high = self._range(key, self._entries[key].uptime)
        return (least is None or least <= high) and (most is None or low <= most)

    def agreeing(self, keys: list[Key]) -> list[Key]:
        """By their true uptimes, in which every wrap is."""
        chosen: list[Key] = []
        for key in sorted(
            keys, key=lambda k: (-self._entries[k].flags, told(self._entries[k])[1], k[2])
        ):
            entry = self._entries[key]
            wall, error = told(entry)
            late = wall - error > self._first[key].harvested_ms + _SLACK
            if wall < _SINCE or (late and entry.flags != 4):
                continue
            low, high = self._range(key, entry.uptime)
            ranges = [self._range(other, entry.uptime) for other in chosen]
            if all(low <= most and high >= least for least, most in ranges):
                chosen.append(key)
        return chosen

    def _range(self, anchor: Key, uptime: int) -> tuple[int, int]:
        """The wall time in ns at this true uptime, if the anchor is right."""
        wall, error = told(self._entries[anchor])
        apart = uptime - self._entries[anchor].uptime
        middle, spread = (wall + apart) * 10**6, (error + _ROUNDED) * 10**6 + abs(apart) * 100
        return middle - spread, middle + spread

    def _earliest(self, key: Key, wraps: int) -> int:
        """By the anchors of its boot, if it has so many wraps that do not show."""
        uptime = self._seen[key] + wraps * _PERIOD
        return max(self._range(anchor, uptime)[0] for anchor in self.believed(*key[:2]))

    def _latest(self, key: Key, wraps: int) -> int:
        uptime = self._seen[key] + wraps * _PERIOD
        return min(self._range(anchor, uptime)[1] for anchor in self.believed(*key[:2]))

    # Wraps in holes

    def _true_wraps(self, board: str, boot: int, run: int) -> int:
        key = self._runs[board, boot][run][0]
        return (self._entries[key].uptime - self._seen[key]) // _PERIOD

    def _anchored(self, board: str, boot: int) -> set[int]:
        return {self._run_of[key] for key in self.believed(board, boot)}

    def _wraps(self, board: str, boot: int, run: int) -> tuple[int | None, int | None]:
        """The least and the most wraps before a run that do not show; None: any number."""
        if not self._anchored(board, boot):
            return None, None
        return self._least(board, boot, run), self._most(board, boot, run)

    @cache  # noqa: B019
    def _least(self, board: str, boot: int, run: int) -> int | None:
        before = [i for i in self._anchored(board, boot) if i <= run]
        return self._true_wraps(board, boot, max(before)) if before else self._since(board, boot)

    @cache  # noqa: B019
    def _most(self, board: str, boot: int, run: int) -> int:
        most = self._true_wraps(board, boot, run)
        while not self._too_many(board, boot, run, most + 1):
            most += 1
        while self._too_many(board, boot, run, most):
            most -= 1
        return most

    def _since(self, board: str, boot: int) -> int | None:
        """The boot did not begin before the one before it had ended."""
        reached = self._end(board, boot)
        if reached is None:
            return None
        least, first = self._true_wraps(board, boot, 0), self._runs[board, boot][0][0]
        while self._latest(first, least) < reached:
            least += 1
        while self._latest(first, least - 1) >= reached:
            least -= 1
        known = self._true_wraps(board, boot, min(self._anchored(board, boot)))
        return least if least <= known else None

    def _too_many(self, board: str, boot: int, run: int, wraps: int) -> bool:
        """A later run has no fewer, and each was over at its harvest, and by the next boot."""
        anchored = self._anchored(board, boot)
        runs = self._runs[board, boot]
        for i in range(run, len(runs)):
            if i in anchored:
                return wraps > self._true_wraps(board, boot, i)
            if self._earliest(runs[i][-1], wraps) > self._until(board, boot, runs[i][-1]):
                return True
        return False

    # Boots and their neighbours

    def _end(self, board: str, boot: int) -> int | None:
        """When the boot before this one was over, at the earliest."""
        before = [other for other in self._boots[board] if boot - FAR <= other < boot]
        if not before:
            return None
        runs = self._runs[board, before[-1]]
        if self.believed(board, before[-1]):
            least = self._least(board, before[-1], len(runs) - 1)
            assert least is not None
            return self._earliest(runs[-1][-1], least)
        reached = self._end(board, before[-1])
        lasted = self._seen[runs[-1][-1]] - self._seen[runs[0][0]]
        return None if reached is None else reached + _slow(lasted)

    def _until(self, board: str, boot: int, last: Key) -> int:
        """When this record, or the boot after it, was over, at the latest."""
        limits = [(self._first[last].harvested_ms + _SLACK) * 10**6]
        behind = [other for other in self._boots[board] if boot + FAR >= other > boot]
        if behind and self.believed(board, behind[0]):
            most = self._most(board, behind[0], 0)
            limits.append(self._latest(self._runs[board, behind[0]][0][0], most))
        elif behind:
            runs = self._runs[board, behind[0]]
            lasted = self._seen[runs[-1][-1]] - self._seen[runs[0][0]]
            limits.append(self._until(board, behind[0], runs[-1][-1]) - _slow(lasted))
        return min(limits)

    # Records

    @cache  # noqa: B019
    def known(self, key: Key) -> tuple[int | None, int | None, str]:
        """Bounds, and how they are known: without any own clock."""
        board, boot, _ = key
        runs = self._runs[board, boot]
        if not self.believed(board, boot):
            reached, first, last = self._end(board, boot), runs[0][0], runs[-1][-1]
            low = None if reached is None else reached + _slow(self._seen[key] - self._seen[first])
            left = _slow(self._seen[last] - self._seen[key])
            return low, self._until(board, boot, last) - left, "between"
        least, most = self._wraps(board, boot, self._run_of[key])
        assert most is not None
        if least == most:
            return self._earliest(key, least), self._latest(key, most), "anchored"
        run = runs[self._run_of[key]]
        high = self._latest(run[-1], most) - _slow(self._seen[run[-1]] - self._seen[key])
        if least is None:
            return None, high, "unknown"
        low = self._earliest(run[0], least) + _slow(self._seen[key] - self._seen[run[0]])
        return low, high, "between" if least <= most else "unknown"

    # Boots that contradict each other

    def lives(self) -> Iterator[list[tuple[str, int]]]:
        """The boots of each life."""
        for board, boots in self._boots.items():
            life: list[tuple[str, int]] = []
            for boot in boots:
                if life and boot - life[-1][1] > FAR:
                    yield life
                    life = []
                life.append((board, boot))
            yield life

    def anchors_of(self, board: str, boot: int, quality: int) -> list[Key]:
        keys = [key for run in self._runs[board, boot] for key in run]
        return [key for key in keys if self.is_told(key, quality)]

    def apart(self, one: Key, other: Key) -> int:
        """The least wall time in ns between two records of a life, by what was recorded."""
        board, boot, _ = one
        if boot == other[1]:
            return _slow(self._seen[other] - self._seen[one])
        ends = {b: (self._runs[board, b][0][0], self._runs[board, b][-1][-1])
                for b in self._boots[board] if boot <= b <= other[1]}  # fmt: skip
        lasted = sum(self.apart(*ends[b]) for b in ends if boot < b < other[1])
        return self.apart(one, ends[boot][1]) + lasted + self.apart(ends[other[1]][0], other)

    def agree(self, one: tuple[str, int], other: tuple[str, int]) -> bool:
        """Two boots, by their own anchors: what was recorded between them has room."""
        last, first = self._runs[one][-1][-1], self._runs[other][0][0]
        return self.over(*one) + self.apart(last, first) <= self.begun(*other)

    def over(self, board: str, boot: int) -> int:
        """When the boot had ended at the earliest, by its own anchors."""
        run = max(self._anchored(board, boot))
        last = self._runs[board, boot][-1][-1]
        return self._earliest(last, self._true_wraps(board, boot, run))

    def begun(self, board: str, boot: int) -> int:
        run = min(self._anchored(board, boot))
        return self._latest(self._runs[board, boot][0][0], self._true_wraps(board, boot, run))
