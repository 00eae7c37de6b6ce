"""`slotmq telemetry live`: every record of every board is in the tables once, also of segments
that boards are still writing, whoever goes away or is killed.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from host_tests.broker.wire.process import BrokerProcess
from slotmq_telemetry import live
from slotmq_telemetry.lake import Lake
from slotmq_telemetry.schemas import BRONZE, GOLD, SILVER
from slotmq_tools.deploy.mqtt_client import Login
from telemetry.tests.conftest import A, B, Field, Lab, identities, recorder
from telemetry.tests.harvest.fake_board import FakeBoards
from telemetry.tests.harvest.recording import Recorder
from telemetry.tests.recorder.test_recording import begin, join
from telemetry.tests.tables.rows import HERE

C = "00000000000000cc"


class Tables:
    """A harvest folder and tables, and who fills them."""

    def __init__(self, lab: Lab, *brokers: BrokerProcess) -> None:
        self.harvest, self.lake = lab.path, Lake(lab.path.parent / "tables")
        self.field = live.Field([each.address for each in (lab.field, *brokers)], Login())

    def round(self) -> None:
        live.run(self.field, self.harvest, self.lake, HERE, None)

    def bronze(self) -> Counter[tuple[str, int, int]]:
        rows = self.lake.rows(BRONZE).to_pylist()
        return Counter((row["board"], row["boot"], row["seq"]) for row in rows)


def says(one: Recorder, boards: FakeBoards, count: int) -> None:
    for number in range(count):
        one.message("room/late", b"%d" % number)
    boards.published()


def test_a_segment_that_grows_is_in_the_tables_once_and_takes_no_space(lab: Lab) -> None:
    one, other = recorder(A, 30), recorder(B, 200)
    boards = lab.attach(one, other)
    tables = Tables(lab)
    sealed = 0
    for count in (0, 1, 5, 0, 60, 3):
        says(one, boards, count)
        tables.round()
        assert tables.bronze() == Counter(identities(one, other))
        sealed = max(sealed, len([*tables.harvest.glob("bundles/*")]))
    assert sealed <= 3, "a bundle only when a segment is whole"
    assert len([*tables.harvest.glob("partial/*.open")]) == 2
    messages = tables.lake.rows(SILVER["messages"])
    assert {*messages["copies"].to_pylist()} == {1}
    traffic = tables.lake.rows(GOLD["boards"]).to_pylist()
    assert sum(row["messages"] for row in traffic) == messages.num_rows


def test_a_harvest_in_between_and_one_afterwards_change_nothing(lab: Lab) -> None:
    one = recorder(A, 100)
    boards = lab.attach(one)
    tables = Tables(lab)
    for _ in range(3):
        tables.round()
        says(one, boards, 7)
        lab.harvest()
        tables.round()
        assert {*tables.bronze()} == identities(one)
        says(one, boards, 40)
    rows = tables.lake.rows(SILVER["messages"]).to_pylist()
    assert len(rows) == len({(row["boot"], row["seq"]) for row in rows})


def test_what_a_ring_overwrote_before_it_was_sealed_stays(lab: Lab) -> None:
    one = recorder(A, 30)
    boards = lab.attach(one)
    tables = Tables(lab)
    tables.round()
    before = identities(one)
    one.keeps = 2
    says(one, boards, 1500)
    tables.round()
    assert not before & identities(one)
    assert tables.bronze() == Counter(before | identities(one))
    reasons = tables.lake.rows(SILVER["losses"])["reasons"].to_pylist()
    assert len(reasons) >= 1


def test_a_board_or_a_broker_that_is_away_keeps_nobody_waiting(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = recorder(A, 50), recorder(B, 50)
    boards, silent = lab.attach(one), lab.attach(other)
    away = Field("cpython", "\n", lab.path.parent)
    third = recorder(C, 50)
    elsewhere = FakeBoards(away.address, [third])
    tables = Tables(lab, away)
    tables.round()
    assert {*tables.bronze()} == identities(one, other, third)
    silent.spoil = lambda _count, _answer: None
    elsewhere.close()
    away.stop()
    seen = identities(other, third)
    says(other, silent, 5)
    for _ in range(3):
        says(one, boards, 5)
        tables.round()
        assert {*tables.bronze()} == identities(one) | seen
    assert tables.field.silent(lab.field.address) == {B}
    asked = len(silent.requests)
    tables.round()
    assert len(silent.requests) == asked, "it is left out"
    silent.spoil = lambda _count, answer: answer
    waits = {key: wait for key, (_, wait) in tables.field._left.items()}
    assert waits == {(lab.field.address, B): 5, (away.address, ""): 5}
    for expected in (10, 20):
        expire(tables.field, (away.address, ""))
        tables.round()
        assert tables.field._left[away.address, ""][1] == expected
    expire(tables.field, (lab.field.address, B))
    tables.round()
    assert {*tables.bronze()} == identities(one, other) | seen
    assert re.search(rf"^\d\d:\d\d:\d\d board {B} is back$", capsys.readouterr().err, re.M)
    assert [*tables.field._left] == [(away.address, "")]


def expire(field: live.Field, who: tuple[live.Address, str]) -> None:
    """Its time to wait is over, which on a slow machine may have been seen already."""
    if who in field._left:
        field._left[who] = 0.0, field._left[who][1]


def test_rounds_with_nothing_new_leave_no_records(tmp_path: Path) -> None:
    run, address = begin(tmp_path, "cpython", "remote_admin true")
    field = live.Field([address], Login())
    harvest = tmp_path / "harvest"
    sensor = join(address, "sensor")
    sensor.publish("t/1", b"1.5", 1)

    def newest() -> int:
        field.fetch(harvest)
        (ring,) = field._rings.values()
        return max((head.next for head in ring.heads().values()), default=0)

    try:
        deadline = time.monotonic() + 60
        while not newest():
            assert time.monotonic() < deadline
        first = field._rings[address]
        time.sleep(2.5)  # the records of this connection are flushed
        before = newest()
        for _ in range(4):
            time.sleep(1)
            assert newest() == before
        assert field._rings[address] is first
        run.stop()
        field.fetch(harvest)
        assert not field._rings, "a connection that is lost is made anew"
    finally:
        field.close()
        sensor.sock.close()


class Process:
    """`slotmq telemetry live`, which is killed."""

    def __init__(self, tables: Tables) -> None:
        host, port = tables.field.brokers[0]
        self._command = [
            sys.executable, "-m", "slotmq_tools.cli", "telemetry", "live", str(tables.harvest),
            str(tables.lake.folder), "--broker", f"{host}:{port}",
        ]  # fmt: skip
        self._log = tables.harvest.parent / "log"

    def start(self, *options: str) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen([*self._command, *options], stdout=log, stderr=log)

    def until(self, condition: Callable[[], bool], *options: str) -> None:
        """Run until this is so, and for a moment more; then kill -9."""
        running = self.start(*options)
        deadline = time.monotonic() + 60
        while not condition():
            assert running.poll() is None and time.monotonic() < deadline, self._log.read_text()
            time.sleep(0.01)
        os.kill(running.pid, signal.SIGKILL)
        running.wait()


@pytest.mark.nightly
def test_nothing_is_lost_or_doubled_by_kill_9(lab: Lab) -> None:
    recorders = [recorder(A, 900), recorder(B, 400)]
    boards = lab.attach(*recorders)
    tables = Tables(lab)
    process, random = Process(tables), Random(5)
    for _ in range(8):
        asked, moment = len(boards.requests), random.random() * 2
        begun = [0.0]

        def has_begun(asked: int = asked, moment: float = moment,
                      begun: list[float] = begun) -> bool:  # fmt: skip
            if len(boards.requests) > asked and not begun[0]:
                begun[0] = time.monotonic()
            return bool(begun[0]) and time.monotonic() > begun[0] + moment

        process.until(has_begun, "--every", "0.1")
        for one in recorders:
            says(one, boards, random.randrange(60))
    assert process.start("--once").wait() == 0
    assert tables.bronze() == Counter(identities(*recorders))
    rows = tables.lake.rows(SILVER["messages"]).to_pylist()
    assert {row["copies"] for row in rows} == {1}
    counted = tables.lake.rows(GOLD["boards"]).to_pylist()
    assert sum(row["messages"] for row in counted) == len(rows)


@pytest.mark.nightly
def test_from_a_publish_to_a_row_of_gold_within_30_seconds(tmp_path: Path) -> None:
    run, (host, port) = begin(tmp_path, "cpython", "remote_admin true")
    lake = Lake(tmp_path / "tables")
    words = [sys.executable, "-m", "slotmq_tools.cli", "telemetry", "live",
             str(tmp_path / "harvest"), str(lake.folder), "--broker", f"{host}:{port}",
             "--every", "1"]  # fmt: skip
    client = join((host, port), "sensor")
    client.publish("t/1", b"1.5", 1)
    time.sleep(2)  # the head is there once a record is
    with (tmp_path / "log").open("wb") as log:
        running = subprocess.Popen(words, stdout=log, stderr=log)

    def until(count: int) -> float:
        begun = time.monotonic()
        while lake.open(GOLD["boards"]) is None or count > sum(
            row["messages"] for row in lake.rows(GOLD["boards"]).to_pylist()
        ):
            assert time.monotonic() - begun < 60 and running.poll() is None
            time.sleep(0.1)
        return time.monotonic() - begun

    try:
        until(1)
        client.publish("t/1", b"2.5", 1)
        assert until(2) < 30
    finally:
        client.sock.close()
        running.kill()
        running.wait()
        run.stop()
