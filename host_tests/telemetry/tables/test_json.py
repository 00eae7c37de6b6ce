"""JSON that is parsed together is what it is alone (payloads.are_json)."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from slotmq_tools.telemetry import payloads

WHOLE = [b'{"t":1}', b"[]", b' [1, {"a":[2]}]\n', '{"a":"é"}'.encode(), b'{"a":1,"a":2}']
BROKEN = [b"[1],[2]", b"[1", b'{"a":[1', b"[2]]", b'{"a":NaN}', b'["x]', b'{"\xff":1}',
          b"[" * 5000, b'[1],"mark",[2]', b"{,}", b"[1]]"]  # fmt: skip


@given(st.lists(st.sampled_from(WHOLE + BROKEN), max_size=12))
def test_none_is_taken_for_two_nor_two_for_one(some: list[bytes]) -> None:
    assert payloads.are_json(some) == [each in WHOLE for each in some]


def test_a_broken_one_among_many_hurts_no_other() -> None:
    assert Counter(payloads.are_json([*WHOLE * 200, BROKEN[0]])) == {True: 1000, False: 1}
