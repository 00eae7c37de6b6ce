"""Clocks that contradict each other: the better kind is believed; what is no better than another
one is "suspect", until clocks.toml says who was wrong. Nobody vouches for a board's own clock.
"""

from __future__ import annotations

import re
from itertools import combinations, permutations
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotmq_tools.errors import ToolError
from slotmq_tools.harvest.segments import TIME
from slotmq_tools.telemetry import corrections, silver
from slotmq_tools.telemetry.anchors import MS, Anchor
from slotmq_tools.telemetry.bounds import ANCHORED, BETWEEN, OWN, SUSPECT, UNKNOWN, Piece
from slotmq_tools.telemetry.clock import Boot, Stretch
from slotmq_tools.telemetry.own_clock import against, clocks
from slotmq_tools.telemetry.schemas import BRONZE

from .test_clock import DAY, HARVESTER, NOW, NTP, RTC, TOLD, anchor
from .test_tick_wraps import PERIOD

LATE = NOW + 900 * DAY  # the harvest
BOARD = "286f000000000001"


def began(boot: int, day: float, quality: int, harvested: int = LATE) -> Boot:
    """A boot that lasted for a day, and began on this one as somebody says."""
    error = 60_000 if quality == RTC else 10
    said = anchor(1, 0, NOW + int(day * DAY), quality, error, harvested)
    return Boot(boot, (Stretch(0, DAY, harvested, (said,)),))


def silent(boot: int, days: float = 0.5) -> Boot:
    return Boot(boot, (Stretch(0, int(days * DAY), LATE),))


def kinds(*boots: Boot) -> list[str]:
    """Of the last piece of each boot."""
    return [*{piece.boot: piece.kind for piece in clocks(boots)[0]}.values()]


def believed(*boots: Boot) -> list[int]:
    return sorted({boot for boot, _ in clocks(boots)[1]})


def piece(boots: list[Boot], boot: int, stretch: int = 0) -> Piece:
    """That of the stretch's end."""
    return [p for p in clocks(boots)[0] if (p.boot, p.stretch) == (boot, stretch)][-1]


def wall(boots: list[Boot], boot: int, uptime: int = 0, stretch: int = 0) -> tuple[float, float]:
    """Its bounds, as days."""
    low, high = piece(boots, boot, stretch).at(uptime) or (0, 0)
    return (low / MS - NOW) / DAY, (high / MS - NOW) / DAY


def test_clocks_that_agree_are_all_believed() -> None:
    for some in permutations((NTP, HARVESTER, TOLD, RTC)):
        boots = [began(i, 2 * i, kind) for i, kind in enumerate(some)]
        assert believed(*boots) == [0, 1, 2, 3]


@pytest.mark.parametrize("worse", [TOLD, RTC])
def test_what_contradicts_better_knowledge_is_not_believed(worse: int) -> None:
    for day in (-298, 0.5, 4.5, 30):
        boots = [began(6, 0, NTP), began(7, day, worse), began(8, 4, HARVESTER)]
        assert believed(*boots) == [6, 8]
        assert kinds(*boots) == [ANCHORED, BETWEEN, ANCHORED]
        low, high = wall(boots, 7)
        assert 0.99 < low < 2 < high < 3.01
    days = silent(2, 3)
    assert believed(began(1, 0, NTP), days, began(3, 3, worse)) == [1]
    assert believed(began(1, 0, NTP), days, began(3, 4.1, worse)) == [1, 3]
    assert believed(began(1, 901, worse)) == [], "after its harvest"


def test_a_worse_anchor_counts_if_the_better_one_is_not_believed() -> None:
    """Of a boot that has both; the harvester's clock was years ahead."""
    ahead = anchor(3, 1000, NOW + 9000 * DAY, HARVESTER, harvested=LATE)
    both = Boot(2, (Stretch(0, DAY, LATE, (anchor(1, 0, NOW + 2 * DAY, TOLD), ahead)),))
    trusted = clocks([began(1, 0, NTP), both, began(3, 4, NTP)])[1]
    assert trusted == {(1, 1), (2, 1), (3, 1)}


@pytest.mark.parametrize("quality", [TOLD, HARVESTER, NTP])
def test_of_one_kind_nobody_knows_who_is_wrong(quality: int) -> None:
    """A phone that is months behind comes by last: times as they stand, which bound nothing."""
    boots = [*(began(i, 2 * i, quality) for i in (1, 2, 3)), silent(4), began(5, -300, quality)]
    assert kinds(*boots) == [SUSPECT, SUSPECT, SUSPECT, UNKNOWN, SUSPECT]
    assert believed(*boots) == []
    for boot, day in ((1, 2), (2, 4), (5, -300)):
        low, high = wall(boots, boot)
        assert low < day < high < low + 0.001
    if quality != NTP:
        known = [began(0, 0, NTP), *boots]  # against which the phone is wrong, and nobody else
        assert kinds(*known) == [*[ANCHORED] * 4, BETWEEN, BETWEEN]


def test_clocks_that_leave_no_room_for_the_boots_between_contradict_each_other() -> None:
    between = [silent(i, 30) for i in (2, 3, 4)]
    for day, right in ((2, []), (90, []), (91.1, [1, 5])):
        assert believed(began(1, 0, TOLD), *between, began(5, day, TOLD)) == right


def test_boots_far_apart_say_nothing_about_each_other() -> None:
    assert believed(began(1, 9, TOLD), began(10_002, 0, TOLD)) == [1, 10_002]


def test_kinds_that_the_format_does_not_know_are_not_believed() -> None:
    for kind in (0, 5, 9, 255):
        assert believed(began(1, 0, NTP), began(2, 2, kind), began(3, 4, TOLD)) == [1, 3]


def test_an_own_clock_counts_in_its_stretch_alone() -> None:
    """What lies behind a hole, or in the next boot, has no time by it."""
    told = began(1, 0, RTC)
    holed = Boot(1, (*told.stretches, Stretch(5 * DAY, 6 * DAY, LATE)))
    assert [piece([holed], 1, i).kind for i in (0, 1)] == [OWN, UNKNOWN]
    assert kinds(told, silent(2), began(3, 5, NTP)) == [OWN, UNKNOWN, ANCHORED]
    for back in (0, 2, 2.9):
        boots = [began(1, 0, NTP), silent(2), began(3, 5 - back, RTC)]
        assert kinds(*boots) == [ANCHORED, BETWEEN, OWN]
        assert wall(boots, 2)[1] > 898
    low, high = wall([told], 1)
    assert low < 0 < high < low + 0.002


def test_a_stretch_behind_a_hole_is_not_bounded_by_the_next_boots_own_clock() -> None:
    """Three wraps are in the hole; the next boot's clock is behind by weeks, or right."""
    known = anchor(3, 1000, NOW + 1000)
    behind = Stretch(5 * DAY, 6 * DAY, NOW + 3 * PERIOD + 7 * DAY)
    for day in (50, 8, 20):
        boots = [Boot(6, (Stretch(0, DAY, NOW + DAY, (known,)), behind)), began(7, day, RTC)]
        low, high = wall(boots, 6, 5 * DAY, stretch=1)
        assert piece(boots, 6, 1).kind == BETWEEN
        assert low < 5 + 3 * PERIOD / DAY < high


def test_beside_a_better_anchor_an_own_clock_adds_nothing() -> None:
    told = anchor(3, 1000, NOW + 1000, TOLD, 5000)
    for wrong, seqs in ((0, [1, 3]), (3_600_000, [3]), (-3_600_000, [3])):
        own = anchor(1, 0, NOW + wrong, RTC, 1000)
        boot = Boot(1, (Stretch(0, DAY, LATE, (own, told)),))
        assert sorted(seq for _, seq in clocks([boot])[1]) == seqs
        low, high = piece([boot], 1).at(1000) or (0, 0)
        assert high - low == 2 * (told.high - told.offset)
        assert kinds(boot) == [ANCHORED]


def test_an_own_clock_after_a_later_anchor_of_its_boot_is_not_believed() -> None:
    """Nobody knows how long before a hole it was, yet it was before what lies behind it."""
    told = Anchor(900, DAY, NTP, NOW, 10, LATE, 1)
    for day, kind in ((30, UNKNOWN), (0.1, UNKNOWN), (-20, OWN)):
        said = anchor(1, 0, NOW + int(day * DAY), RTC, 60_000, LATE)
        boot = Boot(1, (Stretch(0, 1000, LATE, (said,)), Stretch(DAY, 2 * DAY, LATE, (told,))))
        assert [piece([boot], 1, i).kind for i in (0, 1)] == [kind, ANCHORED]
        assert ((1, 1) in clocks([boot])[1]) == (kind == OWN)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(-6, 6)), max_size=8))
def test_against_are_those_that_contradict_another_one(drawn: list[tuple[int, int]]) -> None:
    spans = [(begun, begun + lasts) for begun, lasts in drawn]
    pairs = combinations(range(len(spans)), 2)
    assert against(spans) == {i for a, b in pairs if spans[a][1] > spans[b][0] for i in (a, b)}


def test_what_is_corrected_is_believed_and_settles_what_was_suspect() -> None:
    frames = [
        {"board": BOARD, "boot": boot, "segment": boot, "seq": seq, "ticks": seq * DAY,
         "type": kind, "flags": 2, "payload": TIME.pack((NOW + day * DAY) // 1000, 0, 50),
         "crc": 1, "line": 0, "offset": seq, "harvested_ms": LATE}
        for boot, day in enumerate((0, 2, -40), 1) for seq, kind in enumerate((4, 3))
    ]  # fmt: skip
    bronze = pa.Table.from_pylist(frames, BRONZE.schema)
    for told, kind in (({}, "suspect"), ({3: 44 * DAY}, "anchored")):
        tables = silver.of_board(BOARD, bronze, [], told)
        assert tables["events"]["clock"].to_pylist() == [kind] * 3
        assert tables["anchors"]["believed"].to_pylist() == [kind == "anchored"] * 3
    assert tables["anchors"]["quality"].to_pylist() == ["message", "message", "corrected"]


def test_clocks_toml_has_seconds_for_each_boot_of_a_board(tmp_path: Path) -> None:
    assert corrections.read(tmp_path) == {}
    (tmp_path / corrections.FILE).write_text(f"[{BOARD}]\n7 = 3600\n8 = -0.5\n")
    assert corrections.read(tmp_path) == {BOARD: {7: 3_600_000, 8: -500}}


WRONG = [
    ("[x]", "[x]: a board's id has 16 hex digits"),
    (f"[{BOARD}]\nseven = 1", "the number of a boot, and seconds"),
    (f"[{BOARD}]\n7 = true", "the number of a boot, and seconds"),
    ("[", "clocks.toml cannot be read"),
]


@pytest.mark.parametrize(("text", "complaint"), WRONG, ids=[text for text, _ in WRONG])
def test_a_wrong_clocks_toml_is_one_line(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / corrections.FILE).write_text(text)
    with pytest.raises(ToolError, match=re.escape(complaint)) as failed:
        corrections.read(tmp_path)
    assert len(str(failed.value).splitlines()) == 1
