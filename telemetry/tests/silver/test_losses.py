"""Losses: which records are missing, and the reasons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotmq_telemetry import silver
from slotmq_telemetry.harvest.segments import LOSS, TORN
from slotmq_telemetry.losses import END, NO_SEGMENT
from slotmq_telemetry.schemas import BRONZE

OVERWRITTEN, FULL, FAR = 1, 2, 2**28
Gap = tuple[int, ...]  # boot, first number and count; segment; reason


def lost(
    there: dict[int, list[int]],
    gaps: Sequence[Gap] = (),
    bad: Sequence[tuple[Any, ...]] = (),
) -> list[tuple[Any, ...]]:
    """What is missing where boots have these numbers; `gaps` are told by records (in the last
    boot, in front), `bad` is in quarantine."""
    frame = {"board": "aa", "segment": 4, "ticks": 9, "type": 3, "flags": 1, "crc": 1,
             "payload": b"", "line": 0, "offset": 32}  # fmt: skip
    frames = [frame | {"boot": boot, "seq": seq} for boot, seqs in there.items() for seq in seqs]
    for row, gap in zip(frames[::-1], gaps, strict=False):
        boot, first, count, segment, flags = gap + (NO_SEGMENT, OVERWRITTEN)[len(gap) - 3 :]
        row |= {"type": 5, "flags": flags, "payload": LOSS.pack(boot, first, count, segment)}
    names = ("boot", "first_seq", "last_seq", "reason")
    rows = [dict(zip(names, each, strict=True)) | {"segment": 4} for each in bad]
    found = silver.of_board("aa", pa.Table.from_pylist(frames, BRONZE.schema), rows)["losses"]
    return sorted(
        (row["boot"], row["first_seq"], row["last_seq"], *row["reasons"], *row["segments"],
         *([f"{row['boots']} boots"] if row["boots"] > 1 else ()))
        for row in found.to_pylist()
    )  # fmt: skip


HOLED = {1: [*range(5), *range(9, 21)]}  # without 5 to 8
HOLE = (1, 5, 8, "unexplained")
TO_20 = {1: [*range(21)]}
CASES: dict[str, tuple[Any, ...]] = {
    # numbers that are there, GAP records, quarantine -> the losses
    "a hole": (HOLED, [], [], [HOLE]),
    "lost segments": (HOLED, [(1, 5, 2, 7), (1, 7, 2, 8)], [], [(1, 5, 8, "overwritten", 7, 8)]),
    "harvested before": (TO_20, [(1, 0, 15, 7)], [], []),
    "behind the last": (TO_20, [(1, 23, 3), (1, 31, 5)], [], [(1, 21, 35, "overwritten")]),
    "of a boot without records": ({2: [0]}, [(1, 3, 4, 9)], [], [(1, 0, 6, "overwritten", 9)]),
    "full": (TO_20, [(1, 21, END, NO_SEGMENT, FULL)], [], [(1, 21, None, "ring full")]),
    "full, and written again": (HOLED, [(1, 5, END, NO_SEGMENT, FULL)], [],
                                [(1, 5, 8, "ring full")]),
    "full twice": (
        {1: [*range(21), *range(25, 31)]},
        [(1, 21, END, NO_SEGMENT, FULL), (1, 21, 4, NO_SEGMENT, FULL),
         (1, 31, END, NO_SEGMENT, FULL)],
        [], [(1, 21, 24, "ring full"), (1, 31, None, "ring full")]),
    "full and overwritten": (TO_20, [(1, 21, 5), (1, 21, END, NO_SEGMENT, FULL)], [],
                             [(1, 21, None, "overwritten", "ring full")]),
    "nothing told": ({2: [0]}, [(2, 0, 0)], [], []),
    "boots in a row": ({1: [0], 5: [0], 5 + FAR: [0, 1]}, [(3, 0, 4, 9), (6, 0, 0)], [],
                       [(2, 0, None, "unexplained"), (3, 0, 3, "overwritten", 9),
                        (4, 0, None, "unexplained"),
                        (6, 0, None, "unexplained", f"{FAR - 1} boots")]),
    "damaged, another copy has it": (HOLED, [], [(1, 3, None, "bad CRC")], [HOLE]),
    "torn": (HOLED, [], [(1, 5, None, TORN)], [(1, 5, 8, "quarantined")]),
    "a bad record": (HOLED, [], [(1, 7, 7, "QoS 3")], [(1, 5, 8, "quarantined")]),
    "torn before a gap": (HOLED, [(1, 21, 6)], [(1, 21, None, TORN)],
                          [HOLE, (1, 21, 26, "overwritten", "quarantined")]),
    "torn at the end by a power cut": (TO_20, [], [(1, 21, None, TORN)], []),
    "damaged at the end": (TO_20, [], [(1, 21, None, "bad CRC")],
                           [(1, 21, None, "quarantined")]),
    "damaged, its numbers are known": (TO_20, [(1, 21, 2)], [(1, 23, 40, "bad header CRC")],
                                       [(1, 21, 40, "overwritten", "quarantined")]),
    "a boot only in quarantine": (TO_20, [], [(3, 0, None, TORN)],
                                  [(2, 0, None, "unexplained"), (3, 0, None, "quarantined")]),
    "not read yet": (TO_20, [], [(2, 0, 9, "not read yet: gone")], [(2, 0, 9, "not read yet")]),
}  # fmt: skip


@pytest.mark.parametrize(("there", "gaps", "bad", "right"), CASES.values(), ids=CASES)
def test_what_is_missing_and_why(there: Any, gaps: Any, bad: Any, right: Any) -> None:
    assert lost(there, gaps, bad) == right


@given(st.lists(st.integers(0, 60), unique=True, min_size=9),
       st.lists(st.tuples(*[st.integers(0, 9)] * 3), max_size=9))  # fmt: skip
def test_explanations_equal_those_of_all_pairs(
    numbers: list[int], drawn: list[tuple[int, int, int]]
) -> None:
    """Losses that are told in every order and overlap."""
    gaps: list[Gap] = [(1, 7 * f, END if n == 9 else 4 * n, segment) for f, n, segment in drawn]
    for _, first, last, *why in lost({1: sorted(numbers)}, gaps):
        end = END if last is None else last
        assert [n for n in why if isinstance(n, int)] == sorted({
            segment for _, f, n, segment in gaps if max(f, first) < min(f + n, end + 1)
        })  # fmt: skip
        assert not {*range(first, min(end, 60) + 1)} & {*numbers}


def test_segments_of_which_nothing_came_are_named() -> None:
    """Nobody tells of them: records before and behind them do. Those that wait are not lost."""
    frame = {"board": "aa", "boot": 1, "ticks": 9, "type": 3, "flags": 1, "crc": 1, "line": 0,
             "payload": b"", "offset": 32}  # fmt: skip
    frames = [frame | {"seq": 9 * segment, "segment": segment} for segment in (1, 2, 5, 9999)]
    bad = {"boot": 1, "segment": 3, "first_seq": 27, "last_seq": 30, "reason": "not read yet: x"}
    found = silver.of_board("aa", pa.Table.from_pylist(frames, BRONZE.schema), [bad])["losses"]
    assert found.column("segments").to_pylist() == [[], [], [4], [*range(6, 1006)]]
