"""The query of `slotmq telemetry live`, with a fake Spark: repeated batches, and boards that go
away.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from pyspark.errors import StreamingQueryException

from host_tests.telemetry.tables.rows import HERE
from slotmq_tools.errors import ToolError
from slotmq_tools.telemetry import bronze, live
from slotmq_tools.telemetry.decode import bad_batch
from slotmq_tools.telemetry.lake import Lake
from slotmq_tools.telemetry.schemas import BRONZE, GOLD, QUARANTINE

AWAY = """[FOREACH] Traceback (most recent call last):
  File "ring_fetch.py", line 50, in frames
slotmq_tools.telemetry.ring_fetch.Away: no MQTT at 10.0.0.1:1883 (refused)
"""
UNREACHABLE = (
    "x\nslotmq_tools.deploy.mqtt_client.Unreachable: no MQTT at 10.0.0.1:1883 (refused)\n"
)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "tables").made()


def test_a_batch_that_exists_stays_when_spark_repeats_it(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed: list[tuple[str, object]] = []

    def commit(to: Lake, name: str, frames: object) -> int:
        committed.append((name, frames))
        to.commit(BRONZE, [], (), {name: 1})
        return 7

    monkeypatch.setattr(bronze, "commit", commit)
    take = started(lake)
    planned(lake, 0, 100)
    take("what the ring had", 0)
    take = started(lake)  # another driver
    take("what it has yet", 0)
    assert [what for _, what in committed] == ["what the ring had"]
    planned(lake, 1, 200)
    take("the next", 1)
    names = [name for name, _ in committed]
    assert [name.split("-")[2] for name in names] == ["0000000000", "0000000001"]
    shutil.rmtree(lake.folder / live.CHECKPOINT / "spark")  # then Spark counts anew
    take = started(lake)
    planned(lake, 0, 100)
    take("all of it", 0)
    assert [what for _, what in committed[2:]] == ["all of it"]


def test_a_longer_plan_of_the_same_number_is_another_batch(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut of the computer took the plan, and left the batch."""
    committed: list[object] = []

    def commit(to: Lake, name: str, frames: object) -> int:
        committed.append(frames)
        to.commit(BRONZE, [], (), {name: 1})
        return 7

    monkeypatch.setattr(bronze, "commit", commit)
    counted: list[int] = []
    take = started(lake, counted)
    planned(lake, 0, 100)
    take("the first", 0)
    planned(lake, 1, 200)
    take("100 to 200", 1)
    planned(lake, 1, 200, at=17)
    take("the same, planned later", 1)
    planned(lake, 1, 300)
    take("100 to 300", 1)
    planned(lake, 0, 150)  # two of them were taken
    take("150 to 300", 1)
    assert committed == ["the first", "100 to 200", "100 to 300", "150 to 300"]
    assert counted == [7] * 4


class Frames:
    """Stands for what Spark has read of a ring."""

    def __init__(self, *rows: dict[str, Any]) -> None:
        self._batch = bad_batch([*rows])

    def mapInArrow(self, task: Any, _schema: str) -> Any:  # noqa: N802
        done = [row for batch in task(iter([self._batch])) for row in batch.to_pylist()]
        return SimpleNamespace(collect=lambda: [tuple(row.values()) for row in done])


def test_what_a_killed_run_put_into_quarantine_is_replaced(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ring has lost more when the batch is read again."""
    row = {"board": "00000000000000aa", "boot": 1, "line": -1}
    lost = row | {"seq": 1, "type": 5, "reason": "overwritten"}
    commit = Lake.commit
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):

        def killed(lake: Lake, table: Any, *rest: Any) -> None:
            if table is BRONZE:
                raise KeyboardInterrupt
            commit(lake, table, *rest)

        patch.setattr(Lake, "commit", killed)
        bronze.commit(lake, "live-x-1", Frames(lost))  # type: ignore[arg-type]
    bronze.commit(lake, "live-x-0", Frames(lost | {"seq": 0}))  # type: ignore[arg-type]
    bronze.commit(lake, "live-x-1", Frames(lost | {"seq": 3}))  # type: ignore[arg-type]
    assert sorted(lake.rows(QUARANTINE)["seq"].to_pylist()) == [0, 3]


def test_silver_and_gold_follow_what_has_come(lake: Lake) -> None:
    fresh = live.Fresh(HERE, lake)
    fresh.make()  # nothing is there
    record = {"board": "00000000000000aa", "boot": 1, "segment": 0, "ticks": 5, "flags": 1,
              "type": 3, "payload": b"", "crc": 1, "line": -1, "offset": 0}  # fmt: skip
    for seq in range(3):
        bronze.commit(lake, f"live-{seq}", Frames(record | {"seq": seq}))  # type: ignore[arg-type]
        fresh.make(late=True)
        assert [row["boots"] for row in lake.rows(GOLD["boards"]).to_pylist()] == [seq + 1]
    bronze.commit(lake, "live-9", Frames(record | {"seq": 9}))  # type: ignore[arg-type]
    fresh._next = 1e18
    fresh.make()  # it has taken its time already
    assert lake.rows(GOLD["boards"])["boots"].to_pylist() == [3]


def planned(lake: Lake, number: int, end: int, at: int = 0) -> None:
    """What Spark writes before a batch begins, under its number."""
    log = lake.folder / live.CHECKPOINT / "spark/offsets"
    log.mkdir(parents=True, exist_ok=True)
    (log / f"{number}").write_text(f'v1\n{{"batchTimestampMs":{at}}}\n{{"aa":[1,{end}]}}')


def started(lake: Lake, counted: list[int] | None = None) -> Any:
    """What a stream does with each of its batches."""
    spark = MagicMock()
    count = (counted if counted is not None else []).append
    live.start(spark, lake, {}, None, count)
    (lake.folder / live.CHECKPOINT / "spark").mkdir(exist_ok=True)
    stream = spark.readStream.format().options().load().writeStream
    return stream.foreachBatch.call_args.args[0]


class Queries:
    """What becomes of each query that is started: it ends, or breaks with these words."""

    def __init__(self, *ends: str | type[BaseException] | None) -> None:
        self._ends = list(ends)
        self.options: list[dict[str, str]] = []

    def start(
        self, _spark: Any, _lake: Lake, options: dict[str, str], _every: Any, count: Any
    ) -> Any:
        self.options.append(options)
        for _ in range(5):
            count(2)
        end = self._ends.pop(0)

        def wait(_seconds: float | None) -> None:
            if isinstance(end, str):
                raise StreamingQueryException(end)
            if end is not None:
                raise end

        return SimpleNamespace(awaitTermination=wait, isActive=False, recentProgress=[])


@pytest.fixture
def queries(monkeypatch: pytest.MonkeyPatch) -> Any:
    def of(*ends: str | type[BaseException] | None) -> Queries:
        made = Queries(*ends)
        monkeypatch.setattr(live, "start", made.start)
        return made

    monkeypatch.setattr(live, "_AGAIN_S", 0)
    return of


def run(lake: Lake, every: float | None, seconds: float | None = None) -> int:
    return live.run(MagicMock(), lake, {"brokers": "10.0.0.1:1883"}, every, seconds)


def test_a_board_that_goes_away_is_waited_for(
    lake: Lake, queries: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    made = queries(AWAY, AWAY, None)
    assert run(lake, 5.0) == 30
    assert [options.get("waits") for options in made.options] == [None, "true", "true"]
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2 and all("10.0.0.1:1883 (refused)" in line for line in lines)


def test_ctrl_c_ends_the_waiting(lake: Lake, queries: Any) -> None:
    made = queries(AWAY, KeyboardInterrupt)
    assert run(lake, 5.0) == 20
    assert len(made.options) == 2


def test_the_time_that_was_given_ends_the_waiting(
    lake: Lake, queries: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = queries(AWAY, AWAY)
    monkeypatch.setattr(live, "_AGAIN_S", 3600)
    assert run(lake, 5.0, 0.001) == 10
    assert len(made.options) == 1


@pytest.mark.parametrize(("words", "every"), [(AWAY, None), (UNREACHABLE, 5.0)])
def test_a_permanent_error_is_one_line(
    lake: Lake, queries: Any, words: str, every: float | None
) -> None:
    queries(words)
    with pytest.raises(ToolError, match=r"^[^\n]*10\.0\.0\.1:1883 \(refused\)$"):
        run(lake, every)
