"""What the live source reads, whatever happens to a ring between batches: each record comes once,
and what was overwritten is named.
"""

import struct
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host_tests.telemetry.harvest.recording import Recorder, records
from slotmq_tools.deploy.mqtt_client import Login
from slotmq_tools.harvest.network import Gone, Head
from slotmq_tools.telemetry import ring_fetch, segment
from slotmq_tools.telemetry.ring_fetch import Work
from slotmq_tools.telemetry.ring_index import UNKNOWN, Gap, Piece, Position, RingIndex

from .driver import written

BOARD = "00000000000000aa"
ADDRESS = ("127.0.0.1", 1883)
Identity = tuple[int, int]


class Ring:
    """A board's answers, without the way."""

    board: Recorder

    def __init__(self, *_: object) -> None:
        self.asked: list[tuple[int, int]] = []

    def read(self, _board: str, segment: int, begin: int, end: int | None) -> bytes:
        self.asked.append((segment, begin))
        if segment not in self.board.segments:
            raise Gone(segment)
        return self.board.segments[segment][begin:end]

    def close(self) -> None:
        pass


class Stream:
    """The batches of a stream over one board."""

    def __init__(self, board: Recorder, patch: pytest.MonkeyPatch) -> None:
        Ring.board = board
        patch.setattr(ring_fetch, "Ring", Ring)
        self.board, self.ring, self.index = board, Ring(), RingIndex()
        self.at: Position | None = None
        self.rows: list[Identity] = []
        self.torn: list[tuple[int, int]] = []
        self.gaps: list[Gap] = []

    def plan(self, most: int | None = None) -> tuple[Work, Position]:
        self.index.update(self.ring, head_of(self.board))
        start = self.at or self.index.oldest
        end = self.index.end
        if most is not None:
            end = min(end, self.index.limited(start, most))
        if end <= start:
            return Work(ADDRESS, BOARD, [], []), start
        gaps = self.index.gaps(start, end)
        return Work(ADDRESS, BOARD, self.index.pieces(start, end), gaps), end

    def run(self, work: Work, end: Position) -> int:
        count = 0
        for batch in ring_fetch.frames(work, Login()):
            for row in batch.to_pylist():
                if row["reason"] is None:
                    self.rows.append((row["boot"], row["seq"]))
                    count += 1
                elif row["reason"] == segment.OVERWRITTEN:
                    boot, first, lost, _ = struct.unpack("<IIII", row["payload"])
                    self.gaps.append(Gap(boot, first, lost))
                else:
                    self.torn.append((row["segment"], row["offset"]))
        self.at = end
        return count

    def batch(self, most: int | None = None) -> int:
        return self.run(*self.plan(most))


def head_of(board: Recorder) -> Head:
    state: dict[str, Any] = board.state()
    return Head(**state)


def started(messages: int = 0, **options: Any) -> Recorder:
    board = Recorder(BOARD, **options)
    board.start()
    for number in range(messages):
        board.message(f"room/{number % 3}", b"%d" % number)
    return board


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("messages"), st.integers(1, 40)),
        st.tuples(st.sampled_from(["boot", "tear and boot", "wipe oldest"]), st.just(0)),
        st.tuples(st.just("batch"), st.sampled_from([0, 0, 5, 30])),
        st.tuples(st.just("restart"), st.just(0)),
    ),
    max_size=25,
)


@given(STEPS)
def test_every_record_comes_once_or_is_in_a_gap(steps: list[tuple[str, int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        board = started(size=768)
        stream = Stream(board, patch)
        ever = written(board)
        for step, count in [*steps, ("batch", 0)]:
            happens(board, stream, step, count)
            ever |= written(board)
    assert len(stream.rows) == len(set(stream.rows))
    assert len(stream.torn) == len(set(stream.torn))
    missing = ever - set(stream.rows)
    first = min(stream.rows, default=(0, 0))
    for boot, seq in missing:
        assert (boot, seq) < first or any(covers(gap, boot, seq) for gap in stream.gaps)
    for boot, seq in stream.rows:
        known = [gap for gap in stream.gaps if gap.lost != UNKNOWN]
        assert not any(covers(gap, boot, seq) for gap in known)


def covers(gap: Gap, boot: int, seq: int) -> bool:
    return gap.boot == boot and gap.first <= seq and (
        gap.lost == UNKNOWN or seq < gap.first + gap.lost
    )  # fmt: skip


def happens(board: Recorder, stream: Stream, step: str, count: int) -> None:
    if step == "messages":
        for number in range(count):
            board.message(f"room/{number % 3}", b"x" * (number % 17))
    elif step == "wipe oldest" and len(board.segments) > 1:
        del board.segments[min(board.segments)]
    elif step == "batch":
        stream.batch(count or None)
    elif step == "restart":
        stream.index = RingIndex()
    elif "boot" in step:
        if "tear" in step:
            board.tear()
        board.start()


def test_a_batch_has_as_many_records_as_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    board = started(500)
    stream = Stream(board, monkeypatch)
    counts = []
    while count := stream.batch(120):
        counts.append(count)
    assert counts[:-1] == [120] * (len(counts) - 1)
    assert sorted(stream.rows) == sorted(written(board))


def read_so_far(monkeypatch: pytest.MonkeyPatch) -> tuple[Recorder, Stream]:
    """A board that goes on behind the twenty messages that are read."""
    board = started(20)
    stream = Stream(board, monkeypatch)
    stream.batch()
    return board, stream


def test_of_the_newest_segment_the_driver_asks_only_for_what_is_new(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    board, stream = read_so_far(monkeypatch)
    length = len(board.segments[0])
    stream.ring.asked.clear()
    stream.batch()
    assert stream.ring.asked == []  # the head is as it was
    board.message("room/1", b"new")
    assert stream.batch() == 1
    assert stream.ring.asked == [(0, length)]


def test_of_the_newest_segment_a_task_asks_only_for_what_it_needs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And knows what was defined before it, in the order in which that was done."""
    board, stream = read_so_far(monkeypatch)
    board.topics.clear()  # so that all are defined anew, with other numbers
    for number in (2, 1, 0):
        board.message(f"room/{number}", b"between")
    stream.batch()
    begin = len(board.segments[0])
    for number in range(3):
        board.message(f"room/{number}", b"%d" % number)
    end = len(board.segments[0])
    asked: list[tuple[int, int, int | None]] = []
    work, _ = stream.plan()
    board.message("room/1", b"too late")
    monkeypatch.setattr(ring_fetch, "Ring", watched(asked))
    rows = [row for batch in ring_fetch.frames(work, Login()) for row in batch.to_pylist()]
    assert [(row["topic"], row["payload"], row["reason"]) for row in rows] == [
        (f"room/{number}", b"%d" % number, None) for number in range(3)
    ]
    assert rows[0]["offset"] == begin
    assert asked == [(0, 0, 32), (0, begin, end)]


def watched(asked: list[tuple[int, int, int | None]]) -> type[Ring]:
    class Watched(Ring):
        def read(self, board: str, segment: int, begin: int, end: int | None) -> bytes:
            asked.append((segment, begin, end))
            return super().read(board, segment, begin, end)

    return Watched


def test_a_backlog_in_the_newest_segment_is_fetched_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    board = started(3000, size=1 << 20)
    stream = Stream(board, monkeypatch)
    asked: list[tuple[int, int, int | None]] = []
    monkeypatch.setattr(ring_fetch, "Ring", watched(asked))
    while stream.batch(500):
        pass
    fetched = sum((end or len(board.segments[0])) - begin for _, begin, end in asked)
    assert sorted(stream.rows) == sorted(written(board))
    assert len(board.segments[0]) < fetched < len(board.segments[0]) + 1000


def test_a_newest_segment_that_was_replaced_is_a_gap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    board = started(20)
    stream = Stream(board, monkeypatch)
    work, end = stream.plan()
    fresh = started(20, boot=board.boot)
    board.segments[0] = fresh.segments[0]
    stream.run(work, end)
    assert stream.rows == [] and stream.gaps == [Gap(1, 0, end.seq)]


def test_a_record_that_is_half_on_flash_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    board, stream = read_so_far(monkeypatch)
    board.message("room/1", b"half of it")
    whole = board.segments[0]
    board.segments[0] = whole[:-4]
    assert stream.batch() == 0
    board.segments[0] = whole
    assert stream.batch() == 1 and stream.torn == []


def test_a_segment_overwritten_after_planning_is_a_gap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    board = started(500)
    stream = Stream(board, monkeypatch)
    work, end = stream.plan()
    lost = {seq for seq, _ in records(board.segments.pop(0))}
    stream.run(work, end)
    assert stream.gaps == [Gap(1, 0, len(lost))]
    assert sorted(stream.rows) == sorted(written(board))


def test_a_segment_of_another_boot_gives_no_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    board = started(500)
    stream = Stream(board, monkeypatch)
    work = Work(ADDRESS, BOARD, [Piece(0, 9, 5, None, True)], [])
    stream.run(work, Position(9, 6))
    assert stream.rows == [] and stream.gaps == [Gap(9, 5, UNKNOWN)]


def test_a_board_that_starts_again_and_again_is_read_to_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    board = started(3)
    stream = Stream(board, monkeypatch)
    for _ in range(5):
        board.tear()
        board.start()
        stream.batch(1)
    while stream.batch(1):
        pass
    assert sorted(stream.rows) == sorted(written(board))
    assert len(stream.torn) == 5


def test_a_forged_head_makes_no_gap() -> None:
    """It says that the ring begins with its newest segment."""
    board = started(30)
    Ring.board = board
    ring, index = Ring(), RingIndex()
    index.update(ring, head_of(board))
    start = index.end
    for _ in range(200):
        board.message("t", b"a" * 40)
    index.update(ring, replace(head_of(board), first=head_of(board).segment))
    assert index.gaps(start, index.end) == []
    assert index.pieces(start, index.end)[0].first == start.seq
