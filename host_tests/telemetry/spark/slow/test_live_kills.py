"""kill -9 of driver and executors of the live source at any moment: nothing is lost or doubled,
and what was overwritten meanwhile is named.

The boards go on recording. The test reads bronze without Spark.
"""

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable

from host_tests.broker.wire.process import BrokerProcess
from host_tests.telemetry.harvest.conftest import A, B, Field, identities, recorder
from host_tests.telemetry.harvest.fake_board import FakeBoards
from host_tests.telemetry.harvest.recording import Recorder

from .cluster import Cluster, kill_tree

pytestmark = pytest.mark.timeout(900)
_TIMEOUT_S = 300.0
_MOST = "1000"
C = "00000000000000cc"


@pytest.fixture
def field(tmp_path: Path) -> Iterator[BrokerProcess]:
    broker = Field("cpython", "\n", tmp_path)
    yield broker
    broker.stop()


class Stream:
    """`slotmq telemetry live` as processes, one after the other."""

    def __init__(self, tables: Path, cluster: Cluster, broker: BrokerProcess) -> None:
        self.tables = tables
        self._environment = cluster.environment
        where = f"{broker.address[0]}:{broker.address[1]}"
        self._command = [sys.executable, "-m", "slotmq_tools.telemetry.submit", "live"]
        self._command += [str(tables), "--broker", where, "--most", _MOST]
        self._command += ["--master", cluster.master]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *options: str) -> None:
        env = self._environment | {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
        with (self.tables.parent / "driver.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*self._command, *options], stdout=log, stderr=log, env=env
            )

    def kill(self) -> None:
        assert self._process is not None
        kill_tree(self._process.pid)
        self._process.wait()

    def finish(self) -> None:
        assert self._process is not None
        status = self._process.wait(_TIMEOUT_S)
        assert status == 0, (self.tables.parent / "driver.log").read_text()[-3000:]

    def batches(self) -> int:
        path = str(self.tables / "bronze")
        return DeltaTable(path).version() if DeltaTable.is_deltatable(path) else 0

    def wait(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _TIMEOUT_S
        assert self._process is not None
        while True:
            status = self._process.poll()  # asked first: what it did last counts
            if condition():
                return
            assert status is None, self._log()
            assert time.monotonic() < deadline, self._log()
            time.sleep(0.02)

    def _log(self) -> str:
        return (self.tables.parent / "driver.log").read_text()[-3000:]

    def rows(self, table: str = "bronze") -> list[dict[str, object]]:
        """As any reader sees them."""
        found = DeltaTable(str(self.tables / table)).to_pyarrow_table()
        rows: list[dict[str, object]] = found.to_pylist()
        return rows


def found(stream: Stream) -> Counter[tuple[object, object, object]]:
    return Counter((row["board"], row["boot"], row["seq"]) for row in stream.rows())


def test_nothing_is_lost_or_doubled(
    tmp_path: Path, cluster: Cluster, field: BrokerProcess
) -> None:
    recorders = [recorder(A, 2500), recorder(B, 2500), recorder(C, 100)]
    boards = FakeBoards(field.address, recorders)
    stream = Stream(tmp_path / "tables", cluster, field)
    try:
        killed_while_reading(stream, boards)
        more(boards, recorders)
        killed_between_output_and_commit(stream)
        executor_is_killed(stream, cluster, boards)
        stream.kill()
        more(boards, recorders)
        overwritten = overwrites(boards, recorders[2])
        stream.start("--once")
        stream.finish()
    finally:
        stream.kill()
        boards.close()
    rows = found(stream)
    assert set(rows.values()) == {1}
    missing = identities(*recorders) | overwritten
    assert {identity for identity in rows if identity[0] != C} == {
        identity for identity in missing if identity[0] != C
    }
    is_told(stream, missing - set(rows))


def overwrites(boards: FakeBoards, one: Recorder) -> set[tuple[str, int, int]]:
    """Far more than its ring keeps, while nobody reads; -> all that it had before."""
    before = identities(one)
    one.keeps = 2
    for number in range(1200):
        one.message("room/1", b"%d" % number)
        before |= identities(one) if number % 50 == 0 else set()
    boards.published()
    return before


def is_told(stream: Stream, missing: set[tuple[str, int, int]]) -> None:
    """One row of quarantine names them all, and nothing else is there."""
    (gap,) = stream.rows("quarantine")
    first, lost = gap["seq"], int.from_bytes(bytes(gap["payload"][8:12]), "little")  # type: ignore
    assert (gap["board"], gap["boot"], gap["reason"]) == (C, 1, "overwritten")
    assert missing and {seq for _, _, seq in missing} == set(range(first, first + lost))  # type: ignore


def more(boards: FakeBoards, recorders: list[Recorder]) -> None:
    for one in recorders[:2]:
        for number in range(300):
            one.message("room/late", b"%d" % number)
    recorders[0].start()
    boards.published()


def killed_while_reading(stream: Stream, boards: FakeBoards) -> None:
    """Executors have asked for ranges of a batch that is planned, and not all has come."""
    stream.start("--every", "0")
    stream.wait(lambda: stream.batches() >= 1)
    asked = len(boards.requests)
    stream.wait(lambda: len(boards.requests) > asked + 10)
    stream.kill()


def killed_between_output_and_commit(stream: Stream) -> None:
    """The batch is in bronze; Spark does not know yet."""
    stream.start("--every", "0")
    before = stream.batches()
    stream.wait(lambda: stream.batches() >= before + 1)
    stream.kill()


def executor_is_killed(stream: Stream, cluster: Cluster, boards: FakeBoards) -> None:
    """The cluster starts another one, and the driver goes on."""
    stream.start("--every", "0")
    asked = len(boards.requests)
    stream.wait(lambda: len(boards.requests) > asked + 10)
    there = cluster.executors()
    assert there
    there[0].kill()
    before = stream.batches()
    stream.wait(lambda: stream.batches() >= before + 1)
