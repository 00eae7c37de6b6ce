"""`slotmq harvest` of a board that gives without end: it ends soon, with a line, and takes no more
of disk and memory than heads and headers say."""

import json
import struct
import time
from collections.abc import Callable, Iterable
from queue import Queue
from types import SimpleNamespace
from typing import Any

import pytest

from slotmq_telemetry.harvest import network
from slotmq_telemetry.harvest.segments import HEADER_SIZE
from slotmq_tools.errors import ToolError
from telemetry.tests.conftest import A, B, Lab, identities, recorder

from .fake_board import NONE
from .test_wrong_answers import HEAD, forged

MUCH = NONE - 1
Answer = tuple[int, int, int, bytes]


def test_a_total_that_no_header_allows_is_not_believed(lab: Lab) -> None:
    one, other = recorder(A, 300), recorder(B, 20)
    lab.attach(other)
    boards = lab.attach(one)

    def endless(_count: int, answer: bytes) -> bytes:
        number, offset, _ = struct.unpack("<III", answer[:12])
        return struct.pack("<III", number, offset, MUCH) + (answer[12:] or b"\xff" * 700)

    boards.spoil = endless
    said = lab.harvest(status=1).output
    assert f"board {A}: segment 0: it has more than the {one.size} bytes that its" in said
    asked = [offset for board, _, offset in boards.requests if board == A]
    assert max(asked) < 8 * network._ASKED, "what was asked before the first answer"
    assert lab.identities() >= identities(other)


def test_numbers_without_segments_are_not_all_asked_for(lab: Lab) -> None:
    one = recorder(A, 20)
    boards = lab.attach(one)
    head = HEAD.replace(b'"board":"00000000000000b%b"', b'"board":"00000000000000a%b"')
    one.segments[500_000] = one.segments.pop(0)
    one.newest = 500_000
    forged(lab.field, f"$SLOTMQ/record/{A}/head", head % (b"a", 500_000))
    said = lab.harvest(status=1).output
    assert "are not there: harvest again" in said
    assert len(boards.requests) < 2000


HEADS = {
    "no id": {"board": "../../x"},
    "NUL": {"board": "a\0"},
    "long": {"board": "0" * 300},
    "negative": {"first": -5},
    "large": {"boot": 1 << 32},
}


@pytest.mark.parametrize("wrong", HEADS.values(), ids=HEADS)
def test_a_head_has_an_id_and_numbers_of_32_bits(wrong: dict[str, Any]) -> None:
    said = {"board": A, "boot": 1, "first": 0, "segment": 0, "length": 9, "next": 1, "size": 512}
    assert network._head(f"{network.ROOT}/{A}/head", json.dumps(said).encode()) is not None
    said |= wrong
    topic = f"{network.ROOT}/{said['board']}/head"
    assert network._head(topic, json.dumps(said).encode()) is None


class Hostile(network.Ring):
    """A ring behind which somebody answers each time it is asked for answers."""

    def __init__(self, *said: Callable[[int], Answer | None]) -> None:
        self._said, self.asked, self.turns = said, list[int](), 0
        self._reply = "reply"
        self._has_asked = False
        self._heads: dict[str, network.Head] = {}
        self._client: Any = SimpleNamespace(subscribe=lambda *_: None)
        self.address = ("board", 1883)

    def ask(self, _board: str, _segment: int, offset: int, _length: int) -> None:
        self.asked.append(offset)

    def answer(self, seconds: float) -> Answer | None:
        self.turns += 1
        found = self._said[self.turns % len(self._said)](self.asked[-1])
        if found is None:
            time.sleep(max(0.0, seconds))
        return found if seconds > 0 else None


FLOODS: dict[str, Iterable[Callable[[int], Answer | None]]] = {
    "nothing": [lambda _at: None],
    "no bytes": [lambda at: (0, at, MUCH, b"")],
    "other segments": [lambda at: (7, at, MUCH, b"x" * 99)],
    "other places": [lambda at: (0, at + 5, MUCH, b"x" * 99)],
    "a byte now and then": [lambda at: (0, at, MUCH, b"x"), lambda _at: None],
    "bytes twice, then nothing": [lambda at: (0, at, MUCH, b"x"), *[lambda _at: None] * 9],
}


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> float:
    monkeypatch.setattr(network, "_AGAIN_S", 0.02)
    monkeypatch.setattr(network, "_FIRST_S", 0.02)
    monkeypatch.setattr(network, "_TIMEOUT_S", 0.2)
    return 10  # seconds, where a hundredth of it is the rule


@pytest.mark.parametrize("flood", FLOODS)
def test_a_segment_that_does_not_come_on_is_given_up(patient: float, flood: str) -> None:
    ring, begun = Hostile(*FLOODS[flood]), time.monotonic()
    with pytest.raises(ToolError, match="does not answer"):
        ring.read(A, 0, HEADER_SIZE, None)
    assert time.monotonic() - begun < patient


@pytest.mark.parametrize("flood", FLOODS)
def test_answers_that_nobody_wants_do_not_hide_a_silent_board(patient: float, flood: str) -> None:
    ring, begun = Hostile(*FLOODS[flood]), time.monotonic()
    head = network.Head(A, 1, 3, 3, 9, 1, 512)
    assert ring.silent([head]).keys() == {A}
    assert time.monotonic() - begun < patient


class Endless(Queue[tuple[str, Any]]):
    """Events without end; the first says that the subscription is there."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds = ["subscribe"]

    def get(self, block: bool = True, timeout: float | None = None) -> tuple[str, Any]:
        return (self.kinds.pop() if self.kinds else "message"), None


def test_heads_without_end_are_read_for_a_while(patient: float) -> None:
    ring, begun = Hostile(), time.monotonic()
    ring.events = Endless()
    assert ring.heads() == {}
    assert time.monotonic() - begun < patient


def test_no_more_is_kept_than_some_heads_and_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "BOARDS", 50)
    ring = Hostile()
    ring.events = Queue()
    for number in range(2000):
        board = f"{number:016x}"
        payload = HEAD.replace(b"00000000000000b%b", board.encode()) % 0 + b" " * 70_000
        ring.received(SimpleNamespace(topic=f"{network.ROOT}/{board}/head", payload=payload))
    assert len(ring._heads) == 50
    assert ring.events.qsize() <= 1000
