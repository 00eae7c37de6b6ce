"""The boards of a season write the same bytes as the recorder of lib/slotmq in the same life."""

from __future__ import annotations

import struct
import tempfile
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from slotmq import Limits
from slotmq.fast.stores_cpython import Names
from slotmq.platform.arrays import u16
from slotmq.recorder import files, segments, wall_clock
from slotmq.recorder.writer import Recorder
from slotmq_telemetry.season.board import EVENT, STAY, Board, Make

from .test_clock import DAY, NOW

NAME, SIZE, KEPT = b"12345678", 512, 6
TICKS, NO_ID = 5, 0xFFFF
Step = tuple[int, int, int, int]  # ms that pass, a kind of clock or 0, its error in ms, bytes


class Real:
    """A recorder of lib/slotmq in a folder."""

    def __init__(self, folder: str) -> None:
        names = Names(8, 512)
        self.rec: Any = Recorder(folder + "/", SIZE, KEPT, names, u16(1), Limits(), (b"#",))
        self.rec.board, self.rec.boot, self.stayed = NAME, 1, 0
        files.look(self.rec)
        segments.next_segment(self.rec, 0)
        segments.event(self.rec, 1, b"\0")

    def wait(self, until: int) -> None:
        while self.stayed + STAY <= until:
            self.stayed += STAY
            self.at(self.stayed)
            segments.time(SimpleNamespace(rec=self.rec), 0, 0)
        self.at(until)

    def at(self, uptime: int) -> None:
        self.rec.now, self.rec.o[TICKS] = uptime // 100, uptime % 2**30

    def segments(self) -> list[bytes]:
        self.rec.flush()
        files.close(self.rec)
        return [path.read_bytes() for path in sorted(Path(self.rec.folder).iterdir())]


STEPS = st.tuples(
    st.sampled_from((0, 1, 999, 60_000, 2 * DAY, 5 * DAY, 30 * DAY)),
    st.sampled_from((0, 0, 0, 1, 2, 3, 4)), st.sampled_from((5, 1500, 60_000)),
    st.sampled_from((0, 100, 256)),
)  # fmt: skip


@given(st.lists(STEPS, max_size=30))
def test_a_season_board_writes_the_bytes_of_the_recorder(steps: list[Step]) -> None:
    made = Board(NAME, Make(SIZE, KEPT, flush=1), 0, Random(1))
    with tempfile.TemporaryDirectory() as folder:
        real = Real(folder)
        made.start(NOW)
        made.put(NOW, EVENT, 1, b"\0")
        uptime = 0
        for pause, quality, error, size in steps:
            uptime += pause
            made.wait(NOW + uptime)
            real.wait(uptime)
            if quality:
                wall = NOW + uptime + 1234
                made.tell(NOW + uptime, quality, wall, error, is_false=False)
                wall_clock.anchor(real.rec, quality, wall // 1000, wall % 1000, error)
            else:
                made.put(NOW + uptime, EVENT, 77, b"?" * size)
                segments.event(real.rec, 77, b"?" * size)
        assert real.segments() == [bytes(segment.data) for segment in made.ring]


def test_each_segment_repeats_the_known_time_even_a_wrong_one() -> None:
    made = Board(NAME, Make(SIZE, 100, flush=1), 80, Random(1))
    made.start(NOW)
    made.tell(NOW, 2, NOW + 40 * DAY, 500, is_false=True)
    for hour in range(20):
        made.put(NOW + hour * 3_600_000, EVENT, 77, b"?" * 200)
    heads = [segment.entries[0][1] for segment in made.ring[1:]]
    assert len(heads) > 5
    for entry in heads:
        seconds, ms, error = struct.unpack("<IHI", entry.payload)
        assert entry.kind == 4
        assert seconds * 1000 + ms - entry.uptime == NOW + 40 * DAY
        assert error == 500 + entry.uptime // 10_000
        assert (entry.board, entry.boot, entry.seq) in made.false_anchors
    assert len(made.false_anchors) == 1 + len(heads)
