"""A broker with fake boards, the harvest command, and the contents of a harvest folder."""

import hashlib
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from host_tests.broker.wire.process import BrokerProcess
from slotmq_telemetry import manifest
from slotmq_telemetry.harvest import network
from slotmq_telemetry.harvest.manifest import Line, locked
from slotmq_telemetry.harvest.store import Store
from slotmq_tools import micropython
from slotmq_tools.cli import main
from slotmq_tools.deploy import repl
from slotmq_tools.errors import ToolError

from .harvest.fake_board import FakeBoards
from .harvest.recording import Recorder, records

# Any broker may stand between boards and harvester; slotmq's lets no client publish a head.
ANY_BROKER = """
from slotmq.embed import publishing
from slotmq_tools import micropython
from slotmq_tools.cli import main
from slotmq_tools.deploy import repl
from slotmq_tools.errors import ToolError
from slotmq_telemetry.harvest import network
from slotmq_telemetry.harvest.manifest import locked
from slotmq_telemetry.harvest.store import Store
publishing.refused = lambda *_: False
main()
"""
A, B = "00000000000000aa", "00000000000000bb"


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
        with closing(sqlite3.connect(file)) as rows:
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
        with closing(sqlite3.connect(self.path / "MANIFEST.sqlite")) as rows, rows:
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


def lines_of(folder: Path) -> list[Line]:
    """What the manifest says, as the pipeline reads it."""
    with manifest.opened(folder) as found:
        return found.filled()


def identities(*recorders: Recorder) -> set[tuple[str, int, int]]:
    """What the boards have now; the boot is in the header of each segment."""
    return {
        (recorder.name, int.from_bytes(segment[16:20], "little"), seq)
        for recorder in recorders
        for segment in recorder.segments.values()
        for seq, _ in records(segment)
    }


def cli(*words: object) -> Result:
    """The command with these words."""
    return CliRunner().invoke(main, [*map(str, words)])


def recorder(name: str = A, messages: int = 200, **options: Any) -> Recorder:
    made = Recorder(name, **options)
    made.start()
    for number in range(messages):
        made.message(f"room/{number % 7}", b"%d.5" % number)
    return made


class Cable:
    """A serial line whose board is MicroPython on this machine, in a folder of its own."""

    flash: Path

    def __init__(self, _device: str) -> None:
        self.resets = 0

    def __enter__(self) -> "Cable":
        return self

    def __exit__(self, *_: object) -> None:
        assert self.resets == 1  # the broker runs again, whatever happened

    def run(self, code: str) -> str:
        program = self.flash / "code.py"
        for path in ("/record", "/slotmq.conf", "/sd"):
            code = code.replace(f'"{path}', f'"{self.flash}{path}')
            code = code.replace(f"'{path}", f"'{self.flash}{path}")
        program.write_text(code)
        command = micropython.command(32, 160, program, [])
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if ran.returncode:
            raise ToolError(f"the board: {ran.stderr.splitlines()[-1]}")
        return ran.stdout

    def remove(self, paths: list[str]) -> None:
        for path in paths:
            Path(path).unlink()

    def reset(self) -> None:
        self.resets += 1


class Lab(Folder):
    """A harvest folder, and where it is filled from: boards behind a broker, the flash of a board
    on a cable, a card with copies."""

    def __init__(self, tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
        super().__init__(tmp_path / "harvest")
        self.patch = patch
        patch.setattr(network, "_AGAIN_S", 0.3)
        patch.setattr(repl, "Repl", Cable)
        self.card, self.flash = tmp_path / "card", tmp_path / "flash" / "record"
        self.flash.mkdir(parents=True)
        Cable.flash = self.flash.parent
        self._boards: list[FakeBoards] = []

    @cached_property
    def field(self) -> BrokerProcess:
        """The broker that the boards' clients find."""
        return Field("cpython", "\n", self.path.parent)

    def attach(self, *recorders: Recorder) -> FakeBoards:
        self._boards.append(FakeBoards(self.field.address, list(recorders)))
        return self._boards[-1]

    def written(self, one: Recorder, place: str = "record") -> None:
        """The board on the cable has these segments."""
        for number, segment in one.segments.items():
            (self.flash.parent / place / f"{number:08x}.seg").write_bytes(segment)

    def kept(self, segment: bytes) -> None:
        """The folder has this segment as sealed."""
        with locked(self.path) as manifest:
            store = Store(manifest)
            store.keep(segment, growing=False)
            store.bundle("a test")

    def harvest(self, *options: str, status: int = 0) -> Result:
        """From the broker."""
        host, port = self.field.address
        return self._run("--broker", f"{host}:{port}", *options, status=status)

    def cable(self, *options: str, status: int = 0) -> Result:
        return self._run("--port", "/dev/board", *options, status=status)

    def copied(self, *options: str, status: int = 0) -> Result:
        return self._run("--from", str(self.card), *options, status=status)

    def _run(self, *options: str, status: int) -> Result:
        result = cli("harvest", self.path, *options)
        assert result.exit_code == status, result.output
        return result

    def close(self) -> None:
        for boards in self._boards:
            boards.close()
        if "field" in self.__dict__:
            self.field.stop()


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "harvest")


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    made = Lab(tmp_path, monkeypatch)
    yield made
    made.close()
