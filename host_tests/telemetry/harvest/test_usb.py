"""`slotmq harvest --port`: the code that the board runs, here on 32-bit MicroPython."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from slotmq_tools import micropython
from slotmq_tools.cli import main
from slotmq_tools.deploy import repl
from slotmq_tools.errors import ToolError
from slotmq_tools.harvest.manifest import locked
from slotmq_tools.harvest.store import Store

from .conftest import A, Folder, identities, recorder
from .recording import Recorder


class Line:
    """A serial line whose board is MicroPython on this machine, in a folder of its own."""

    flash: Path

    def __init__(self, _device: str) -> None:
        self.resets = 0

    def __enter__(self) -> "Line":
        return self

    def __exit__(self, *_: object) -> None:
        assert self.resets == 1  # the broker runs again, whatever happened

    def run(self, code: str) -> str:
        found = micropython.find(32)
        program = self.flash / "code.py"
        for path in ("/record", "/slotmq.conf", "/sd"):
            code = code.replace(f'"{path}', f'"{self.flash}{path}')
            code = code.replace(f"'{path}", f"'{self.flash}{path}")
        program.write_text(code)
        command = micropython.command(32, 160, program, [])
        assert found
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if ran.returncode:
            raise ToolError(f"the board: {ran.stderr.splitlines()[-1]}")
        return ran.stdout

    def remove(self, paths: list[str]) -> None:
        for path in paths:
            Path(path).unlink()

    def reset(self) -> None:
        self.resets += 1


@pytest.fixture
def flash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What lies on the board's flash."""
    Line.flash = tmp_path / "flash"
    (Line.flash / "record").mkdir(parents=True)
    monkeypatch.setattr(repl, "Repl", Line)
    return Line.flash / "record"


@pytest.fixture
def harvest(folder: Folder) -> Callable[..., Result]:
    def run(*options: str, status: int = 0) -> Result:
        command = ["harvest", str(folder.path), "--port", "/dev/board", *options]
        result = CliRunner().invoke(main, command)
        assert result.exit_code == status, result.output
        return result

    return run


def written(one: Recorder, flash: Path) -> None:
    for number, segment in one.segments.items():
        (flash / f"{number:08x}.seg").write_bytes(segment)


def test_all_files_come_and_nothing_is_changed(
    flash: Path, harvest: Callable[..., Result], folder: Folder
) -> None:
    one = recorder(messages=300, size=8192)
    written(one, flash)
    before = {path.name: path.read_bytes() for path in flash.iterdir()}
    assert f"{len(one.segments)} segments" in harvest().output
    assert folder.identities() == identities(one)
    assert before == {path.name: path.read_bytes() for path in flash.iterdir()}
    assert "nothing new" in harvest().output


def test_delete_leaves_the_newest_and_unsafe_segments(
    flash: Path, harvest: Callable[..., Result], folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = recorder(messages=300)
    written(one, flash)
    with monkeypatch.context() as patch:
        patch.setattr(
            "slotmq_tools.harvest.manifest.Manifest.append", lambda *_: 1 / 0
        )  # the disk is full, say
        with pytest.raises(ZeroDivisionError):
            raise harvest("--delete", status=1).exception or AssertionError
    assert len(list(flash.iterdir())) == len(one.segments)
    harvest("--delete")
    assert [path.name for path in flash.iterdir()] == [f"{one.newest:08x}.seg"]
    assert folder.identities() == identities(one)


def test_over_the_network_and_then_by_cable_makes_no_doubles(
    flash: Path, harvest: Callable[..., Result], folder: Folder
) -> None:
    one = recorder(messages=300)
    written(one, flash)
    harvest()
    one.start()
    one.message("room/1", b"after the harvest")
    written(one, flash)
    assert ": 1 segments" in harvest().output
    assert folder.identities() == identities(one)
    assert len(folder.segments()) == len(one.segments)


def kept(folder: Folder, segment: bytes) -> None:
    """The folder has this segment as sealed."""
    with locked(folder.path) as manifest:
        store = Store(manifest)
        store.keep(segment, growing=False)
        store.bundle("a test")


def test_a_segment_of_which_the_bundle_lacks_records_is_not_deleted(
    flash: Path, harvest: Callable[..., Result], folder: Folder
) -> None:
    one = recorder(messages=30)
    kept(folder, one.segments[0][:-300])
    one.start()
    written(one, flash)
    assert "00000000.seg: stays on the board" in harvest("--delete", status=1).output
    assert len([*flash.iterdir()]) == 2


@pytest.mark.parametrize("tail", [b"\xff" * 40, b"\x12" * 40], ids=["erased", "torn"])
def test_a_segment_longer_on_the_board_is_not_deleted_unless_by_erased_bytes(
    tail: bytes, flash: Path, harvest: Callable[..., Result], folder: Folder
) -> None:
    one = recorder(messages=30)
    one.segments[0] += tail
    kept(folder, one.segments[0][:-40])
    one.start()
    written(one, flash)
    erased = tail[0] == 0xFF
    said = harvest("--delete", status=0 if erased else 1).output
    stays = "/00000000.seg: stays on the board: its bundle lacks a part of it"
    assert (stays in said) is not erased
    assert (flash / "00000000.seg").exists() is not erased


def test_a_board_without_recordings(flash: Path, harvest: Callable[..., Result]) -> None:
    said = harvest(status=1).output
    assert "no recordings" in said and "/record/*.seg" in said
    (flash / "00000000.seg").write_bytes(b"something else, of at least 32 bytes")
    assert "not a segment" in harvest(status=1).output


def test_location_overrides_the_boards_configuration(
    flash: Path, harvest: Callable[..., Result], folder: Folder
) -> None:
    elsewhere = flash.parent / "sd" / "my ring"
    elsewhere.mkdir(parents=True)
    one = recorder(messages=300)
    written(one, elsewhere)
    conf = flash.parent / "slotmq.conf"
    text = "# record_location /record\nrecord #\n\nrecord_location /old\n"
    conf.write_text(text)
    assert "there is no /old/*.seg" in harvest(status=1).output
    assert "there is no /sd/none/*.seg" in harvest("--location", "/sd/none", status=1).output
    conf.write_text(text + "  record_location \t sd/my ring/ \n")
    assert f"{len(one.segments)} segments" in harvest().output
    assert folder.identities() == identities(one)
    conf.unlink()
    assert "nothing new" in harvest("--location", "/sd/my ring").output


def test_options_that_do_not_go_together(folder: Folder) -> None:
    for options, complaint in (
        (["--port", "x", "--broker", "y"], "not both"),
        (["--broker", "x", "--broker", "y"], "one --broker at a time"),
        (["--port", "x", "--set-time"], "--set-time needs --broker"),
        (["--port", "x", "--board", "aa"], "--board needs --broker"),
        (["--broker", "x", "--delete"], "--delete needs --port"),
        (["--broker", "x", "--location", "/sd"], "--location needs --port"),
        (["--compact", "--location", "/sd"], "--location needs --port"),
    ):
        result = CliRunner().invoke(main, ["harvest", str(folder.path), *options])
        assert result.exit_code == 2 and complaint in result.output
    assert A and not folder.path.exists()
