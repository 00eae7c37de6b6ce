"""What anybody may publish gets through to the report; a board that fails stops no other."""

from __future__ import annotations

import json
import struct
from datetime import UTC
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import cbor2
import orjson
import pyarrow as pa
import pytest
from click.testing import Result
from hypothesis import given
from hypothesis import strategies as st

from slotmq_telemetry import gold, payloads, silver
from slotmq_telemetry.lake import Lake
from slotmq_telemetry.schemas import GOLD, SILVER
from slotmq_telemetry.season.board import DAY, EVENT, MESSAGE, NTP, Board, Make
from slotmq_telemetry.season.harvest import Harvest
from telemetry.tests.conftest import cli

START, SIZE = 1_772_323_200_000, 65_280
SURROGATE = rb'{"\ud800":1}'
HOSTILE = {
    "surrogate in a name": SURROGATE,
    "surrogate in a value": rb'{"a":"\udfff","b":1}',
    "surrogate deep": rb'{"a":[[{"\ud800":"\ud800"}]]}',
    "NUL in a name": rb'{"\u0000":1,"a\u0000b":2}',
    "NaN": b'{"a":NaN,"b":1}',
    "infinite": b'{"a":1e999,"b":1}',
    "many digits": b'{"a":' + b"9" * 5000 + b"}",
    "more than 64 bits": b'{"a":18446744073709551616,"b":-9223372036854775809}',
    "many digits in quotes": b'{"a":"' + b"9" * 5000 + b'"}',
    "other digits": '{"a":"\u0661\u0662"}'.encode(),
    "a number of many digits": b"9" * 5000,
    "deep": b"[" * 20_000 + b"]" * 20_000,
    "deep enough": b'{"a":' * 1000 + b"1" + b"}" * 1000,
    "twice": b'{"a":1,"a":2}',
    "no name": b'{"":1}',
    "many names": json.dumps({f"f{i}": i for i in range(3000)}).encode(),
    "script": b'{"</script><script>alert(1)</script>":1,"{{ x }}":2,"\\"":3,"a.b[0]":4}',
    "bidi": '{"\u202e":1,"\ufeff":2,"\ufffe":3,"\U0010ffff":4}'.encode(),
    "byte order mark": b"\xef\xbb\xbf{}",
    "CBOR: surrogate": b"\xa1\x63\xed\xa0\x80\x01",
    "CBOR: long list": b"\x9b\x00\x00\x00\x7f" + b"\xff" * 4,
    "CBOR: long text": b"\x81\x7b" + b"\xff" * 8,
    "CBOR: large number": cbor2.dumps({"a": 2**4000}),
    "CBOR: date": b"\xc1\xfb" + struct.pack(">d", 1e300),
    "CBOR: days": b"\xd8\x64\x1b" + b"\xff" * 8,
    "CBOR: decimal": b"\xc4\x82\x1b" + b"\x7f" + b"\xff" * 7 + b"\x01",
    "CBOR: big float": b"\xc5\x82\x1a\x7f\xff\xff\xff\x01",
    "CBOR: fraction": b"\xd8\x1e\x82\x01\x00",
    "CBOR: pattern": b"\xd8\x23\x61(",
    "CBOR: mail": b"\xd8\x24\x78\x1aContent-Type: text/\xc3\xa9;\x0a\x0a",
    "CBOR: address": b"\xd9\x01\x04\x43abc",
    "CBOR: itself": b"\xd8\x1c\x81\xd8\x1d\x00",
    "CBOR: reference": b"\xd8\x1d\x18\x63",
    "CBOR: set": b"\xd9\x01\x02\x81\x81\x01",
    "CBOR: deep": b"\x81" * 5000 + b"\x01",
    "CBOR: odd names": cbor2.dumps({(1, 2): 1, None: 2, 1.5: 3, b"a": 4, True: 5}),
    "zeros": bytes(40),
    "erased": b"\xff" * 40,
}  # fmt: skip


def kinds(some: list[bytes]) -> dict[str, list[Any]]:
    """What silver says of them; what it calls JSON gold can read."""
    found = payloads.typed(pa.array(some, pa.binary()))
    for text in found["json"].drop_null().to_pylist():
        orjson.loads(text)
        pa.array([text], pa.string())
    objects = [t for t in found["json"].drop_null().to_pylist() if t.startswith("{")]
    for name, _, _ in payloads.fields(objects):
        pa.array([name], pa.string())
    return {name: column.to_pylist() for name, column in found.items()}


@pytest.mark.parametrize("payload", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_payload_is_of_a_kind(payload: bytes) -> None:
    alone = kinds([payload])
    between = kinds([b'{"a":1}', payload, b"21"])
    assert between == {n: [*kinds([b'{"a":1}'])[n], *alone[n], *kinds([b"21"])[n]] for n in alone}


any_value: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=9)
    | st.binary(max_size=9) | st.datetimes() | st.decimals() | st.fractions(),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.text(max_size=5) | st.integers() | st.binary(max_size=3), inner)
    | st.builds(cbor2.CBORTag, st.integers(0, 2000), inner),
    max_leaves=12,
)  # fmt: skip
names = st.lists(
    st.sampled_from([r"\ud800", r"\udc00", r"\u0000", "a", r"\"", "\\", "\u2028"])
).map("".join)
numbers = st.sampled_from(["1", "1e400", "-0", "NaN", '"7"', "[[]]"])
as_json = st.builds(lambda name, value: f'{{"{name}":{value}}}'.encode(), names, numbers)
as_cbor = any_value.filter(lambda v: isinstance(v, dict | list)).map(
    lambda v: cbor2.dumps(v, timezone=UTC)
)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    data = bytearray(draw(as_cbor | as_json))
    for _ in range(draw(st.integers(0, 3))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data)


@given(st.lists(mutated() | st.binary(max_size=40) | as_json, max_size=8))
def test_any_bytes_are_of_a_kind(some: list[bytes]) -> None:
    found = kinds(some)
    assert len(found["kind"]) == len(some)


def board(name: bytes, random: Random) -> Board:
    made = Board(name, Make(SIZE, 40), 3, random)
    made.start(START)
    made.tell(START, NTP, START, 5, is_false=False)
    return made


def fill(made: Board, some: list[bytes], topics: list[str]) -> None:
    made.put(START + 1, EVENT, 2, b"\x04", "client")
    for i, (payload, topic) in enumerate(product(some, topics)):
        made.put(START + 1000 * (2 + i), MESSAGE, 0, payload, "client", topic)
    made.wait(START + DAY)
    made.finish()


def harvest_of(folder: Path, *bad: bytes) -> tuple[Path, str, str]:
    """A bundle of a board with these payloads, and of one that sends 21.5."""
    random = Random(1)
    evil, good = board(b"\xee", random), board(b"\x01", random)
    topics = ["t", "</script>", "\u202e\ufffe", "a/\x1b[2J", "'; --", "x" * 500]
    fill(evil, [*bad], topics)
    fill(good, [b"21.5"] * 5, ["t"])
    harvest = Harvest(folder, SIZE, random)
    harvest.bundle([*evil.copies(), *good.copies()], START + DAY)
    harvest.save()
    return folder, evil.hex, good.hex


def run(*words: object) -> Result:
    return cli("telemetry", *words)


def test_all_of_them_get_through_to_the_report(tmp_path: Path) -> None:
    harvest, evil, good = harvest_of(tmp_path / "h", *HOSTILE.values())
    done = run("ingest", harvest, tmp_path / "t")
    assert (done.exit_code, done.exception) == (0, None), done.output
    lake = Lake(tmp_path / "t")
    sent = lake.rows(SILVER["messages"])
    assert {*HOSTILE.values()} <= {*sent["payload"].to_pylist()}
    assert {evil, good} == {*lake.rows(GOLD["boards"])["board"].to_pylist()}
    done = run("report", tmp_path / "t", tmp_path / "page.html")
    assert (done.exit_code, done.exception) == (0, None), done.output
    assert "<script>alert(1)" not in (tmp_path / "page.html").read_text()


def test_the_surrogate_ends_no_tables(tmp_path: Path) -> None:
    harvest, evil, good = harvest_of(tmp_path / "h", b'{"a":1}', SURROGATE)
    done = run("ingest", harvest, tmp_path / "t")
    assert done.exit_code == 0, done.output
    told = Lake(tmp_path / "t").rows(GOLD["readings"]).to_pylist()
    assert {(row["board"], row["field"]) for row in told} == {(evil, "a"), (good, "")}


@pytest.mark.parametrize("step", ["silver", "gold"])
@pytest.mark.parametrize("error", [UnicodeEncodeError("utf-8", "x", 0, 1, "no"), MemoryError(),
                                   OSError(5, "Input/output error")])  # fmt: skip
def test_a_board_that_fails_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, error: Exception
) -> None:
    harvest, evil, good = harvest_of(tmp_path / "h", b'{"a":1}')
    tables, lake = tmp_path / "t", Lake(tmp_path / "t")
    with monkeypatch.context() as patch:
        fails_for(patch, step, evil, error)
        for words in (("ingest", harvest, tables), ("build", tables)):
            done = run(*words)
            *_, which, last = done.output.splitlines()
            assert done.exit_code == 1 and which.startswith(f"board {evil}: "), done.output
            assert last == f"Error: 1 board cannot be built: the next {words[0]} tries again"
            assert {*lake.rows(GOLD["boards"])["board"].to_pylist()} == {good}
    done = run("build", tables)
    assert done.exit_code == 0 and "gold: 1 board with something new" in done.output
    assert {*lake.rows(GOLD["boards"])["board"].to_pylist()} == {evil, good}


def fails_for(patch: pytest.MonkeyPatch, step: str, evil: str, error: Exception) -> None:
    if step == "silver":
        made = silver.of_board

        def of_board(board: str, *more: Any) -> Any:
            if board == evil:
                raise error
            return made(board, *more)

        patch.setattr(silver, "of_board", of_board)
        return
    sensors = gold.sensors

    def of_fields(timed: gold.Numbers) -> Any:
        if "a" in timed.fields.to_pylist():
            raise error
        return sensors(timed)

    patch.setattr(gold, "sensors", of_fields)
