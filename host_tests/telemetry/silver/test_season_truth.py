"""The truth of a season checks all times but those that a wrong clock has made, even on boards
that believe a wrong clock.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

from slotmq_tools.telemetry.season.truth import Truth
from slotmq_tools.telemetry.season.world import Knobs, season

KNOBS = Knobs(boots=4, steps=20, anchors=0.1, wrong_clocks=0.3, renewals=0)


def counted(seed: int) -> Counter[tuple[bool, bool, bool]]:
    """Times, by whether their board believes somebody who is wrong, whether they are to be right,
    and whether they are."""
    with tempfile.TemporaryDirectory() as folder:
        lived = season(Path(folder) / "harvest", seed, KNOBS)
        truth = Truth(lived)
    lies = lived.false_anchors & truth.entries.keys()
    misled = {key[0] for key in lies if key in truth.clocks.believed(*key[:2])}
    found = Counter[tuple[bool, bool, bool]]()
    for key, at in truth.true_times():
        time = truth.wall(key)
        if time is not None and time[2] not in ("own", "suspect"):
            is_right = abs(time[0] - at * 1000) <= time[1]
            found[key[0] in misled, truth.is_promised(key), is_right] += 1
    return found


def test_all_times_are_checked_but_those_of_wrong_clocks() -> None:
    found = sum((counted(seed) for seed in range(60)), Counter[tuple[bool, bool, bool]]())
    count = found.total()
    tried = sum(n for (_, is_promised, _), n in found.items() if is_promised)
    assert not any(is_promised and not is_right for _, is_promised, is_right in found)
    assert found[False, False, True] == found[False, False, False] == 0
    assert found[True, True, True] > count // 20
    assert found[True, False, True] < count // 20
    assert tried > count * 0.8
