"""Times of a board's records from what it was told of the time: the better kind is believed; what
is no better than another one is "suspect"; nobody vouches for a board's own clock.
"""

from __future__ import annotations

import re
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotmq_telemetry import corrections, silver
from slotmq_telemetry.harvest.segments import TIME
from slotmq_telemetry.schemas import BRONZE
from slotmq_tools.errors import ToolError

NOW = 1_780_000_000_000
DAY = 86_400_000  # ms
WRAP = 2**30 / DAY  # days, after which the ticks begin anew
LATE = 900.0  # the day of the harvest
RTC, TOLD, HARVESTER, NTP = 1, 2, 3, 4
BOARD = "286f000000000001"
Stretch = tuple[Any, ...]  # day of its boot on which it begins, how long it lasts, anchors
Said = tuple[float, ...]  # kind, day that it says, how many days after the beginning, error in ms


class Seen(NamedTuple):
    """What silver says, in days since NOW."""

    kinds: list[str]  # of each stretch
    starts: list[tuple[float, float]]  # bounds of the first record of each
    ends: list[tuple[float, float]]
    believed: list[int]  # boots, once for each anchor
    uptimes: list[float]  # of the first records


def boot(number: int, *stretches: Stretch, harvested: float = LATE) -> list[dict[str, Any]]:
    """Frames of a boot: its beginning, its end, and something every three days between."""
    rows, seq = [], 0
    for day, lasts, *told in stretches:
        when = [
            (day, 1, 3, b""),
            *((day + 3 * i, 2, 3, b"") for i in range(1, int(lasts / 3) + 1)),
        ]
        when.append((day + lasts, 9, 3, b""))
        for kind, says, *rest in told:
            after, error = tuple(rest) + (0, 10)[len(rest) :]
            wall = NOW + round(says * DAY)
            payload = TIME.pack(wall // 1000, wall % 1000, error)
            when.append((day + after, 4 + kind, 4, payload))
        for at, flags, kind, payload in sorted(when):
            rows.append({
                "board": BOARD, "boot": number, "segment": 0, "seq": seq, "type": kind,
                "ticks": round(at * DAY) % 2**30, "payload": payload, "crc": 1, "line": 0,
                "flags": flags - 4 if kind == 4 else flags, "offset": seq,
                "harvested_ms": NOW + round(harvested * DAY),
            })  # fmt: skip
            seq += 1
        seq += 9  # which are missing
    return rows


def began(number: int, day: float, kind: int, **options: Any) -> list[dict[str, Any]]:
    """A boot that lasted for a day, and began on this one as somebody says."""
    return boot(number, (0, 1, (kind, day, 0, 60_000 if kind == RTC else 10)), **options)


def silent(number: int, days: float = 0.5, **options: Any) -> list[dict[str, Any]]:
    return boot(number, (0, days), **options)


def seen(*boots: list[dict[str, Any]], told: corrections.Corrections = corrections.NONE) -> Seen:
    frames = pa.Table.from_pylist([row for some in boots for row in some], BRONZE.schema)
    tables = silver.of_board(BOARD, frames, [], told)
    events = tables["events"].to_pylist()
    first, last = ([e for e in events if e["event"] == name] for name in ("boot", "unsubscribe"))
    assert [e["clock"] for e in first] == [e["clock"] for e in last]
    starts, ends = ([_bounds(row) for row in rows] for rows in (first, last))
    rows = tables["anchors"].to_pylist()
    return Seen(
        [row["clock"] for row in first], starts, ends, [r["boot"] for r in rows if r["believed"]],
        [row["uptime_ms"] / DAY for row in first],
    )  # fmt: skip


def _bounds(row: dict[str, Any]) -> tuple[float, float]:
    if row["wall"] is None:
        return -1e9, 1e9
    middle, error = (row["wall"].timestamp() * 1000 - NOW) / DAY, row["wall_error_us"] / DAY / 1000
    return middle - error, middle + error


A, B, S, OWN, U = "anchored", "between", "suspect", "own", "unknown"
GONE = (2, (0, 3))  # a boot of three days that nobody told the time
AHEAD = (TOLD, 2), (HARVESTER, 9000)  # the harvester's clock is years ahead
BOOTS: dict[str, tuple[list[list[dict[str, Any]]], list[str], list[int]]] = {
    # boots -> the clock of each stretch, and whose anchors are believed
    "never set": ([boot(1, (0, 1, *((RTC, day - NOW / DAY) for day in (0, 10957, 18628))))],
                  [U], []),
    "after its harvest": ([began(1, 901, TOLD)], [U], []),
    "NTP after the harvest": ([began(1, 901, NTP)], [A], [1]),
    "of no kind": ([began(1, 0, NTP), *(began(i, i, 5 * i) for i in (0, 2, 3)), began(4, 8, TOLD)],
                   [U, A, B, B, A], [1, 4]),
    "nothing in front": ([silent(1), began(2, 1, NTP)], [U, A], [2]),
    "no room": ([began(1, 0, NTP), silent(2), began(3, 1.1, NTP)], [S, U, S], []),
    "new rings": ([began(1, 0, NTP), silent(2**27), began(2**27 + 1, 1, NTP), silent(2**28),
                   began(2**28 + 1, -9, NTP)], [A, U, A, U, A], [1, 2**27 + 1, 2**28 + 1]),
    "10,000 apart": ([began(1, 9, TOLD), began(10_002, 0, TOLD)], [A, A], [1, 10_002]),
    "the worse of a boot": ([began(1, 0, NTP), boot(2, (0, 1, *AHEAD)), began(3, 4, NTP)],
                            [A, A, A], [1, 2, 3]),
    "no room for three days": ([began(1, 0, NTP), boot(*GONE), began(3, 3, TOLD)], [A, B, B], [1]),
    "room for three days": ([began(1, 0, NTP), boot(*GONE), began(3, 4.1, TOLD)],
                            [A, B, A], [1, 3]),
    "30 days each": ([began(1, 0, TOLD), *(silent(i, 30) for i in (2, 3)), began(4, 60, TOLD)],
                     [S, U, U, S], []),
    "enough for them": ([began(1, 0, TOLD), *(silent(i, 30) for i in (2, 3)), began(4, 62, TOLD)],
                        [A, B, B, A], [1, 4]),
    "own clocks bound nobody": ([began(1, 0, RTC), silent(2), began(3, 5, NTP)],
                                [OWN, U, A], [1, 3]),
    "own and right": ([began(1, 0, NTP), silent(2), began(3, 5, RTC)], [A, B, OWN], [1, 3]),
    "own and too early": ([began(1, 0, NTP), silent(2), began(3, 1, RTC)], [A, B, B], [1]),
    "own in its stretch": ([boot(1, (0, 1, (RTC, 0)), (5, 1))], [OWN, U], [1]),
    "own and after what follows": ([boot(1, (0, 1, (RTC, 30)), (5, 1, (NTP, 0)))], [U, A], [1]),
    "own and before what follows": ([boot(1, (0, 1, (RTC, -20)), (5, 1, (NTP, 0)))],
                                    [OWN, A], [1, 1]),
    "own beside a better one": ([boot(1, (0, 1, (RTC, 0), (TOLD, 0)))], [A], [1, 1]),
    "own, and wrong": ([boot(1, (0, 1, (RTC, 0.1), (TOLD, 0)))], [A], [1]),
    "a harvest before better ones": ([began(1, 0, NTP), boot(2, (0, 1, (TOLD, 2)), harvested=-3)],
                                     [A, U], [1]),
}  # fmt: skip


@pytest.mark.parametrize(("boots", "kinds", "believed"), BOOTS.values(), ids=BOOTS)
def test_which_clocks_are_believed(boots: Any, kinds: list[str], believed: list[int]) -> None:
    found = seen(*boots)
    assert (found.kinds, found.believed) == (kinds, believed)


def test_clocks_that_agree_are_all_believed() -> None:
    for some in permutations((NTP, HARVESTER, TOLD, RTC)):
        found = seen(*(began(i, 2 * i, kind) for i, kind in enumerate(some)))
        assert found.believed == [0, 1, 2, 3]


@pytest.mark.parametrize("worse", [TOLD, RTC])
@pytest.mark.parametrize("day", [-298, 0.5, 4.5, 30])
def test_what_contradicts_better_knowledge_is_not_believed(worse: int, day: float) -> None:
    found = seen(began(6, 0, NTP), began(7, day, worse), began(8, 4, HARVESTER))
    assert (found.kinds, found.believed) == ([A, B, A], [6, 8])
    assert 0.99 < found.starts[1][0] < found.starts[1][1] < 3.01


@pytest.mark.parametrize("quality", [TOLD, HARVESTER, NTP])
def test_of_one_kind_nobody_knows_who_is_wrong(quality: int) -> None:
    """A phone that is months behind comes by last: times as they stand, which bound nothing."""
    boots = [*(began(i, 2 * i, quality) for i in (1, 2, 3)), silent(4), began(5, -300, quality)]
    found = seen(*boots)
    assert (found.kinds, found.believed) == ([S, S, S, U, S], [])
    for (low, high), day in zip(found.starts, (2, 4, 6, None, -300), strict=True):
        assert day is None or low < day < high < low + 0.001
    if quality != NTP:  # the phone is wrong, and nobody else
        assert seen(began(0, 0, NTP), *boots).kinds == [A, A, A, A, B, B]
    found = seen(*boots, told={5: 320 * DAY})
    assert (found.kinds, found.believed) == ([A, A, A, B, A], [1, 2, 3, 5])


def test_a_boot_without_anchor_lies_between_its_neighbours_and_before_its_harvest() -> None:
    found = seen(began(1, 0, NTP), silent(2, 2), began(3, 6, NTP), silent(4, 1, harvested=9))
    assert found.kinds == [A, B, A, B]
    for bounds, right in zip((*found.starts[1::2], found.ends[3]), ((1, 4), (7, 8), (8, 9)),
                             strict=True):  # fmt: skip
        assert bounds == pytest.approx(right, abs=0.002)


def test_an_error_is_the_anchors_and_grows_with_the_distance_unless_another_is_near() -> None:
    far = 10_000_000 / DAY  # 100 ppm of which are a second
    one, other = (NTP, 0), (NTP, far + 400 / DAY, far)
    for after, said, wall, error in (
        (0, [one], 0, 12), (far, [one], 10_000_000, 1012),
        (far / 2, [one, other], 5_000_200, 312), (far, [one, other], 10_000_400, 12),
    ):  # fmt: skip
        rows = boot(1, (0, 2 * far, *said))
        rows += [rows[0] | {"seq": 99, "ticks": round(after * DAY), "flags": 6}]
        rows.sort(key=lambda row: row["ticks"])
        frames = [row | {"seq": i} for i, row in enumerate(rows)]
        made = silver.of_board(BOARD, pa.Table.from_pylist(frames, BRONZE.schema), [])["events"]
        (row,) = [row for row in made.to_pylist() if row["event"] == "subscribe"]
        assert round(row["wall"].timestamp() * 1000) == NOW + wall
        assert row["wall_error_us"] == pytest.approx(error * 1000, abs=3)


# A hole hides wraps: by its ticks what was on day 20 may have been on day 7.6, 20, 32.4 or later.
KNOWN = (0, 1, (NTP, 0))
SHOWN = 20 - WRAP
HOLES: dict[str, tuple[list[list[dict[str, Any]]], list[str], list[tuple[float, float]]]] = {
    # boots -> the clocks, and the bounds of the first records of all stretches, in days
    "both sides known": ([boot(1, KNOWN, (20, 1, (NTP, 20)), (60, 1, (NTP, 60)))],
                         [A, A, A], [(0, 0), (20, 20), (60, 60)]),
    "between two that agree": ([boot(1, KNOWN, (2, 1), (5, 1, (NTP, 5)))],
                               [A, A, A], [(0, 0), (2, 2), (5, 5)]),
    "between two that do not": ([boot(1, KNOWN, (20, 1), (60, 1, (NTP, 60)))],
                                [A, B, A], [(0, 0), (SHOWN, 59 - 39 % WRAP), (60, 60)]),
    "nothing behind": ([boot(1, KNOWN, (20, 1), harvested=1e5)], [A, U], [(0, 0), (-1e9, 1e9)]),
    "harvested on day 34": ([boot(1, KNOWN, (20, 1), harvested=34)], [A, B],
                            [(0, 0), (SHOWN, 33)]),
    "harvested on day 10": ([boot(1, KNOWN, (20, 1), harvested=10)], [A, A],
                            [(0, 0), (SHOWN, SHOWN)]),
    "the boot before is far": ([began(1, -20, NTP), boot(2, (0, 1), (10, 1, (NTP, 10)))],
                               [A, B, A], [(-20, -20), (-19, 0), (10, 10)]),
    "the boot before is near": ([began(1, -4, NTP), boot(2, (0, 1), (10, 1, (NTP, 10)))],
                                [A, A, A], [(-4, -4), (0, 0), (10, 10)]),
    "the next boot's own clock": ([boot(1, KNOWN, (5, 1), harvested=50), began(2, 3, RTC)],
                                  [A, B, B], [(0, 0), (5, 49), (6, 899)]),
}  # fmt: skip


@pytest.mark.parametrize(("boots", "kinds", "bounds"), HOLES.values(), ids=HOLES)
def test_how_often_the_ticks_wrapped_in_a_hole(boots: Any, kinds: list[str], bounds: Any) -> None:
    found = seen(*boots)
    assert found.kinds == kinds
    for (low, high), right in zip(found.starts, bounds, strict=True):
        assert (low, high) == pytest.approx(right, abs=0.01 if high < 1000 else 11)


def test_uptimes_count_the_wraps_that_are_known() -> None:
    boots = [boot(1, KNOWN, (20, 1, (NTP, 20)), (60, 1, (NTP, 60)), (90, 1))]
    assert seen(*boots).uptimes[:3] == pytest.approx([0, 20, 60])
    assert seen(boot(1, (0, 1), (20, 1))).uptimes == pytest.approx([0, SHOWN])


DRAWN = st.tuples(st.integers(1, 10**7), st.integers(-2500, 2500), st.sampled_from((1, 2, 4)),
                  st.sampled_from((5, 40, 900)))  # fmt: skip


@given(st.lists(DRAWN, unique_by=lambda one: one[0]))
def test_the_believed_agree_with_all_that_are_better_and_bound_all(drawn: list[Any]) -> None:
    """Better: of a better kind, or earlier."""
    drawn.sort()
    chosen: list[Any] = []
    for one in sorted(drawn, key=lambda a: (-a[2], a[0])):
        if all(abs(one[1] - other[1]) <= one[3] + other[3] + 4 + abs(one[0] - other[0]) / 10_000
               for other in chosen if other[2] > RTC or one[2] == RTC):  # fmt: skip
            chosen.append(one)
    rows = boot(1, (0, 0.2, *((kind, (at + off) / DAY, at / DAY, error)
                              for at, off, kind, error in drawn)))  # fmt: skip
    tables = silver.of_board(BOARD, pa.Table.from_pylist(rows, BRONZE.schema), [])
    said = [tables["anchors"].column(n).to_pylist() for n in ("believed", "anchor", "error_ms")]
    assert [*said[0]] == [one in chosen for one in drawn]
    counted = [one for one in chosen if one[2] > RTC] or chosen
    for row in tables["events"].to_pylist() if counted else ():
        bounds = [(off, error + 2 + abs(row["uptime_ms"] - at) / 10_000)
                  for at, off, _, error in counted]  # fmt: skip
        low, high = max(o - e for o, e in bounds), min(o + e for o, e in bounds)
        middle = row["wall"].timestamp() * 1000 - NOW - row["uptime_ms"]
        assert (middle, row["wall_error_us"] / 1000) == pytest.approx(
            ((low + high) / 2, (high - low) / 2), abs=0.01)  # fmt: skip


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 6)), max_size=7))
def test_boots_are_suspect_that_leave_another_one_no_room(drawn: list[tuple[int, int]]) -> None:
    """With all boots that were between them."""
    boots = [boot(i, (0, lasts, (TOLD, day))) for i, (day, lasts) in enumerate(drawn)]
    wrong = {
        i
        for a, (day, _) in enumerate(drawn)
        for b in range(a + 1, len(drawn))
        if day + sum(lasts for _, lasts in drawn[a:b]) > drawn[b][0]
        for i in (a, b)
    }
    assert seen(*boots).kinds == [S if i in wrong else A for i in range(len(drawn))]


def test_clocks_toml_has_seconds_for_each_boot_of_a_board(tmp_path: Path) -> None:
    assert corrections.read(tmp_path) == {}
    (tmp_path / corrections.FILE).write_text(f"[{BOARD}]\n7 = 3600\n8 = -0.5\n")
    assert corrections.read(tmp_path) == {BOARD: {7: 3_600_000, 8: -500}}


WRONG = [
    ("[x]", "[x]: a board's id has 16 hex digits"),
    (f"[{BOARD}]\nseven = 1", "the number of a boot, and seconds"),
    *(
        (f"[{BOARD}]\n{line}", "the number of a boot, and seconds")
        for line in (
            "7 = true",
            "01 = 5",
            "'\u0663' = 5",
            f"{1 << 32} = 5",
            f"{'1' * 5000} = 5",
            f"7 = {'9' * 400}",
            "7 = nan",
        )
    ),
    ("[", "clocks.toml cannot be read"),
]


@pytest.mark.parametrize(("text", "complaint"), WRONG, ids=[ascii(text[:40]) for text, _ in WRONG])
def test_a_wrong_clocks_toml_is_one_line(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / corrections.FILE).write_text(text, "utf-8")
    with pytest.raises(ToolError, match=re.escape(complaint)) as failed:
        corrections.read(tmp_path)
    assert len(str(failed.value).splitlines()) == 1
