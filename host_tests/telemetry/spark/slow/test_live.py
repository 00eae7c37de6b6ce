"""The live source with Spark, from recording boards to silver: harvested as well, each message is
there once, and what was overwritten is a loss with its reason.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from host_tests.broker.wire import process
from host_tests.broker.wire.process import BrokerProcess
from host_tests.telemetry.harvest.conftest import A, B, Field, identities, recorder
from host_tests.telemetry.harvest.fake_board import FakeBoards
from host_tests.telemetry.harvest.recording import Recorder
from host_tests.telemetry.tables.rows import HERE, keyed, plain
from slotmq_tools.errors import ToolError
from slotmq_tools.harvest.manifest import locked
from slotmq_tools.harvest.store import Store
from slotmq_tools.telemetry import bronze, build, live
from slotmq_tools.telemetry.lake import Lake
from slotmq_tools.telemetry.schemas import BRONZE, GOLD, QUARANTINE, SILVER


@pytest.fixture
def field(tmp_path: Path) -> Iterator[BrokerProcess]:
    broker = Field("cpython", "\n", tmp_path)
    yield broker
    broker.stop()


def options(field: BrokerProcess) -> dict[str, str]:
    return {"brokers": f"127.0.0.1:{field.address[1]}", "maxRecordsPerTrigger": "400"}


def harvested(folder: Path, *recorders: Recorder) -> Path:
    with locked(folder) as manifest:
        store = Store(manifest)
        for one in recorders:
            for number, segment in one.segments.items():
                store.keep(segment, growing=number == one.newest)
        store.bundle("a test")
    return folder


def test_live_and_harvest_make_one_table(
    spark: SparkSession, tmp_path: Path, field: BrokerProcess
) -> None:
    one, other = recorder(A, 300), recorder(B, 200)
    boards = FakeBoards(field.address, [one, other])
    lake = Lake(tmp_path / "tables").made()
    try:
        first = live.run(spark, lake, options(field), None)
        assert first == len(identities(one, other)) > 400  # so there were two batches
        seen = identities(one, other)
        one.keeps = 2
        for number in range(600):
            one.message("room/1", b"%d" % number)
        boards.published()
        live.run(spark, lake, options(field), None)
        assert live.run(spark, lake, options(field), None) == 0
    finally:
        boards.close()
    assert lake.rows(GOLD["boards"]).num_rows == 2  # which follow what is read
    bronze.ingest(HERE, harvested(tmp_path / "harvest", one, other), lake)
    build.build_silver(HERE, lake)
    table = keyed(plain(lake.rows(SILVER["messages"])))
    whole = seen | identities(one, other)
    assert set(table) <= whole
    assert {row["copies"] for key, row in table.items() if key[0] == B} == {2}
    losses = keyed(plain(lake.rows(SILVER["losses"])))
    last = max(seq for board, _, seq in seen if board == A)
    (loss,) = losses.values()
    assert (loss["board"], loss["boot"], loss["first_seq"]) == (A, 1, last + 1)
    assert loss["last_seq"] == min(seq for _, _, seq in identities(one)) - 1
    assert loss["reasons"] == ["overwritten"]


def fail_after_commit(patch: pytest.MonkeyPatch) -> None:
    """Spark does not write down that the batch is done."""
    commit = bronze.commit

    def committed(*arguments: Any) -> None:
        commit(*arguments)
        raise ToolError("the power went")

    patch.setattr(bronze, "commit", committed)


def killed_after_its_commit(
    spark: SparkSession, lake: Lake, field: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that writes a batch into bronze, and is killed before Spark notes it."""
    with monkeypatch.context() as patch, pytest.raises(ToolError, match="the power went"):
        fail_after_commit(patch)
        live.run(spark, lake, options(field), None)


def identities_of(lake: Lake) -> list[tuple[str, int, int]]:
    found = lake.rows(BRONZE).to_pylist()
    return sorted((row["board"], row["boot"], row["seq"]) for row in found)


def test_a_batch_that_exists_stays_though_the_ring_overwrote_it(
    spark: SparkSession, tmp_path: Path, field: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = recorder(A, 300)
    boards = FakeBoards(field.address, [one])
    lake = Lake(tmp_path / "tables").made()
    try:
        killed_after_its_commit(spark, lake, field, monkeypatch)
        seen = identities(one)
        one.keeps = 2
        for number in range(600):
            one.message("room/1", b"%d" % number)
        boards.published()
        live.run(spark, lake, options(field), None)
    finally:
        boards.close()
    assert identities_of(lake) == sorted(seen | identities(one))
    (gap,) = lake.rows(QUARANTINE).to_pylist()
    assert (gap["reason"], gap["seq"]) == ("overwritten", len(seen))


def test_a_plan_lost_by_a_power_cut_is_made_again_without_loss(
    spark: SparkSession, tmp_path: Path, field: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = recorder(A, 300)
    boards = FakeBoards(field.address, [one])
    lake = Lake(tmp_path / "tables").made()
    try:
        killed_after_its_commit(spark, lake, field, monkeypatch)
        for path in (lake.folder / live.CHECKPOINT / "spark/offsets").iterdir():
            path.unlink()
        for number in range(300):
            one.message("room/1", b"%d" % number)
        boards.published()
        found = live.run(spark, lake, options(field), None)
    finally:
        boards.close()
    assert (
        lake.need(BRONZE).version() == 3
    )  # of the first and its second plan some are there twice
    assert set(identities_of(lake)) == identities(one)
    assert found == len(identities(one))


def test_a_board_that_goes_away_with_a_batch_planned_is_waited_for(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = recorder(A, 300)
    brokers = [Field("cpython", "\n", tmp_path)]
    boards = [FakeBoards(brokers[0].address, [one])]
    lake = Lake(tmp_path / "tables").made()
    waits: list[str] = []

    def cut(_count: int, answer: bytes) -> bytes:
        number, offset = struct.unpack_from("<II", answer)
        if number == 0 and offset:  # what only the task asks for
            brokers[0].process.kill()
        return answer

    def waited(why: str, _deadline: object) -> bool:
        waits.append(why)
        brokers.append(Field("cpython", "\n", tmp_path))
        boards.append(FakeBoards(brokers[1].address, [one]))
        return True

    boards[0].spoil = cut
    monkeypatch.setattr(process, "free_port", lambda: brokers[0].address[1])
    monkeypatch.setattr(live, "_waited", waited)
    fail_after_commit(monkeypatch)  # which ends it
    try:
        with pytest.raises(ToolError, match="the power went"):
            live.run(spark, lake, options(brokers[0]), 0.1)
    finally:
        for each in boards:
            each.close()
        brokers[0].process.kill()  # if it was not
        for broker in brokers[1:]:
            broker.stop()
    assert len(waits) == 1 and "no MQTT at" in waits[0] and "\n" not in waits[0]
    assert identities_of(lake) == sorted(identities(one))


def test_no_broker_is_one_line(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(tmp_path / "tables").made()
    with pytest.raises(ToolError, match=r"no MQTT at 127\.0\.0\.1:1") as failed:
        live.run(spark, lake, {"brokers": "127.0.0.1:1"}, None)
    assert "\n" not in str(failed.value)
