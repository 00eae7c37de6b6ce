"""JSON that is parsed together is what it is alone: payloads.are_json, json_numbers.fields."""

from __future__ import annotations

import json
from collections import Counter

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from slotmq_tools.telemetry import json_numbers, payloads

WHOLE = [b'{"t":1}', b"[]", b' [1, {"a":[2]}]\n', '{"a":"é"}'.encode(), b'{"a":1,"a":2}']
BROKEN = [b"[1],[2]", b"[1", b'{"a":[1', b"[2]]", b'{"a":NaN}', b'["x]', b'{"\xff":1}',
          b"[" * 5000, b'[1],"mark",[2]', b"{,}", b"[1]]"]  # fmt: skip


@given(st.lists(st.sampled_from(WHOLE + BROKEN), max_size=12))
def test_none_is_taken_for_two_nor_two_for_one(some: list[bytes]) -> None:
    assert payloads.are_json(some) == [each in WHOLE for each in some]


def test_a_broken_one_among_many_hurts_no_other() -> None:
    assert Counter(payloads.are_json([*WHOLE * 200, BROKEN[0]])) == {True: 1000, False: 1}


OBJECTS = [
    {"t": 1.5, "n": 7}, {"t": "21.5", "n": 8}, {"t": "x"}, {"t": None, "n": True}, {"": 2**70},
    {"t": {"n": 3}}, {"t": [1, 2], "n": 4}, {"n": {"a": [None, "x"]}}, {'a"b': 5, "c:": -0.5}, {},
]  # fmt: skip
TEXTS = [*map(json.dumps, OBJECTS), '{"t": 1, "t": 2}', '{"t":\n3, "n": 1e400}']


@given(st.lists(st.sampled_from(TEXTS), max_size=60))
def test_numbers_of_objects_are_those_that_json_has(texts: list[str]) -> None:
    found = {
        (name, int(place), float(value))
        for name, places, values in json_numbers.fields(pa.array(texts, pa.string()))
        for place, value in zip(places, values, strict=True)
    }
    right = {
        (name, i, float(value))
        for i, text in enumerate(texts)
        for name, value in json.loads(text).items()
        if value == "21.5" or (type(value) in (int, float) and value != float("inf"))
    }
    assert found == right
