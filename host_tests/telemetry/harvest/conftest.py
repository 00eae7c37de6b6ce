"""A broker with fake boards, the harvest command, and the contents of a harvest folder."""

import hashlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from host_tests.broker.wire.process import BrokerProcess
from slotmq_tools.cli import main

from .fake_board import FakeBoards
from .recording import Recorder, records

# Any broker may stand between boards and harvester; slotmq's lets no client publish a head.
ANY_BROKER = """
from slotmq.embed import publishing
from slotmq_tools.cli import main
publishing.refused = lambda *_: False
main()
"""
A, B = "00000000000000aa", "00000000000000bb"
Attach = Callable[..., FakeBoards]


class Field(BrokerProcess):
    """A broker where clients may say what the boards' own brokers say."""

    def _command(self) -> list[str]:
        executable, _, _, *arguments = super()._command()
        return [executable, "-c", ANY_BROKER, *arguments]


class Folder:
    """A harvest folder, read without the code that wrote it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def lines(self) -> list[dict[str, Any]]:
        file = self.path / "MANIFEST.sqlite"
        if not file.exists():
            return []
        with sqlite3.connect(file) as rows:
            rows.row_factory = sqlite3.Row
            found = [dict(row) for row in rows.execute("select * from bundles order by line")]
            for line in found:
                asked = "select * from segments where line = ? order by place"
                there = [[*row][2:] for row in rows.execute(asked, (line["line"],))]
                line["segments"] = [segment[:5] for segment in there]
                line["growing"] = [[*s[:3], s[5]] for s in there if s[5] is not None]
            return found

    def change(self, text: str, *values: object) -> None:
        """Change the manifest by a statement of SQL."""
        with sqlite3.connect(self.path / "MANIFEST.sqlite") as rows:
            rows.execute(text, values)

    def segments(self) -> list[tuple[tuple[str, int, int], bytes]]:
        """Each of each bundle, once its line was found true."""
        found = []
        for line in self.lines():
            if not line["segments"]:
                continue
            data = (self.path / line["path"]).read_bytes()
            assert hashlib.sha256(data).hexdigest() == line["sha256"]
            size = line["segment_size"]
            assert len(data) == line["size"] == size * len(line["segments"])
            for index, (board, boot, number, _, last) in enumerate(line["segments"]):
                segment = data[index * size : (index + 1) * size]
                assert max((seq for seq, _ in records(segment)), default=-1) == last
                found.append(((board, boot, number), segment))
        return found

    def identities(self) -> set[tuple[str, int, int]]:
        """(board, boot, seq) of every record."""
        return {
            (board, boot, seq)
            for (board, boot, _), segment in self.segments()
            for seq, _ in records(segment)
        }


def identities(*recorders: Recorder) -> set[tuple[str, int, int]]:
    """What the boards have now; the boot is in the header of each segment."""
    return {
        (recorder.name, int.from_bytes(segment[16:20], "little"), seq)
        for recorder in recorders
        for segment in recorder.segments.values()
        for seq, _ in records(segment)
    }


def recorder(name: str = A, messages: int = 200, **options: Any) -> Recorder:
    made = Recorder(name, **options)
    made.start()
    for number in range(messages):
        made.message(f"room/{number % 7}", b"%d.5" % number)
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "harvest")


@pytest.fixture
def field(tmp_path: Path) -> Iterator[BrokerProcess]:
    """The broker that the boards' clients find."""
    broker = Field("cpython", "\n", tmp_path)
    yield broker
    broker.stop()


@pytest.fixture
def attach(field: BrokerProcess) -> Iterator[Attach]:
    there: list[FakeBoards] = []

    def attach_boards(*recorders: Recorder) -> FakeBoards:
        there.append(FakeBoards(field.address, list(recorders)))
        return there[-1]

    yield attach_boards
    for boards in there:
        boards.close()


@pytest.fixture
def harvest(field: BrokerProcess, folder: Folder) -> Callable[..., Result]:
    """`slotmq harvest` from that broker into that folder."""

    def run(*options: str, status: int = 0) -> Result:
        where = f"{field.address[0]}:{field.address[1]}"
        result = CliRunner().invoke(
            main, ["harvest", str(folder.path), "--broker", where, *options]
        )
        assert result.exit_code == status, result.output
        return result

    return run
