"""Recording allocates nothing within a segment, and keeps nothing allocated over many."""

import time
from collections import Counter
from collections.abc import Iterator

import pytest

from slotmq_dev.golden import decode

from .traffic import BURST, Traffic
from .watched import HEAP, Watched, assert_restored

UNPACKED = 40 * 1024  # heap for modules of the recorder, which are not packed here
ROUNDS = 60
SEGMENT, BUDGET = 4096, 16384
DEF, MESSAGE, GAP = 1, 2, 5
FLUSHED_S = 2.5


def recording(conf: str) -> Iterator[tuple[Watched, Traffic]]:
    with Watched(HEAP + UNPACKED, conf) as watched:
        traffic = Traffic(watched.address)
        for qos in (0, 1, 2):
            traffic.burst(qos)
        yield watched, traffic
        traffic.close()


@pytest.fixture
def in_one_segment() -> Iterator[tuple[Watched, Traffic]]:
    yield from recording("record 4194304 8388608")


@pytest.fixture
def in_many() -> Iterator[tuple[Watched, Traffic]]:
    yield from recording(f"record {SEGMENT} {BUDGET}")


def records(watched: Watched) -> list[dict]:  # type: ignore[type-arg]
    time.sleep(FLUSHED_S)
    files = sorted((watched.folder / "record").glob("*.seg"))
    return [record for file in files for record in decode(file.read_bytes())["records"]]


def test_within_a_segment_nothing_is_allocated(
    in_one_segment: tuple[Watched, Traffic],
) -> None:
    watched, traffic = in_one_segment
    sent = [BURST] * 3
    with watched.locked() as seen:
        for _ in range(ROUNDS):
            for qos in (0, 1, 2):
                sent[qos] += traffic.burst(qos)
    assert seen["changed"] == 0
    found = records(watched)
    kept = Counter(each["flags"] for each in found if each["type"] == MESSAGE)
    assert [kept[qos] for qos in (0, 1, 2)] == sent
    assert [each["seq"] for each in found] == list(range(len(found)))
    assert sum(each["type"] == DEF for each in found) > ROUNDS  # topics evict others


def test_new_and_deleted_segments_leave_nothing_in_the_heap(
    in_many: tuple[Watched, Traffic],
) -> None:
    watched, traffic = in_many
    before = watched.unloaded()
    for _ in range(ROUNDS):
        for qos in (0, 1, 2):
            traffic.burst(qos)
    assert_restored(before, watched.unloaded())
    names = sorted(file.stem for file in (watched.folder / "record").glob("*.seg"))
    assert len(names) == BUDGET // SEGMENT
    assert int(names[0], 16) > ROUNDS // 2  # older segments were deleted
    assert any(each["type"] == GAP and each["flags"] == 1 for each in records(watched))
