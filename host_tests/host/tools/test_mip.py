"""`slotmq build --mip`: mip installs it, and the broker serves clients in a Pico W's heap."""

import functools
import hashlib
import json
import shutil
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib import metadata
from pathlib import Path

import pytest
from click.testing import CliRunner
from mpremote import mip

from host_tests.broker.wire import codec
from host_tests.broker.wire.client import Client
from host_tests.broker.wire.process import Program
from slotmq_tools import boards, micropython
from slotmq_tools.cli import main
from slotmq_tools.pack import mpy, native
from slotmq_tools.ports import free_port

ROOT = Path(__file__).parents[3]
PROGRAM = Path(__file__).with_name("mip_micropython.py")
VERSION = metadata.version("slotmq")
PICO = boards.load("RPI_PICO_W")

NATIVE = (
    "viper",
    "journal_viper",
    "record_viper",
    "senders_viper",
    "frames_viper",
)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


class Flash:
    """A board as mip uses it; its file system is a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hashed: list[str] = []  # the files whose hash was asked for

    def fs_exists(self, path: str) -> bool:
        return self._place(path).exists()

    def fs_mkdir(self, path: str) -> None:
        self._place(path).mkdir()

    def fs_writefile(self, path: str, data: bytes, **_: object) -> None:
        self._place(path).write_bytes(data)

    def fs_hashfile(self, path: str, algorithm: str) -> bytes:
        assert algorithm == "sha256"
        self.hashed.append(path)
        return hashlib.sha256(self._place(path).read_bytes()).digest()

    def exec(self, statement: str) -> None:
        assert statement == "import sys"

    def eval(self, _expression: str) -> int:
        return micropython.find(32).mpy & 0xFF

    def _place(self, path: str) -> Path:
        return self.folder / path.lstrip("/")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The address of a web server with the built folder."""
    built = CliRunner().invoke(main, ["build", "--mip", str(tmp_path / "built")])
    assert built.exit_code == 0, built.output
    handler = functools.partial(Quiet, directory=str(tmp_path / "built"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{serving.server_address[1]}"
        serving.shutdown()


def installed(server: str, flash: Path) -> Path:
    """Install with mpremote's own code; -> the board's folder lib."""
    flash.mkdir()
    mip._install_package(Flash(flash), f"{server}/package.json", "no index", "/lib", None, True)
    return flash / "lib"


def contents(folder: Path) -> dict[str, bytes]:
    files = (file for file in folder.rglob("*") if file.is_file())
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def test_it_serves_in_a_pico_ws_heap(server: str, tmp_path: Path) -> None:
    lib = installed(server, tmp_path / "flash")
    shutil.copy(ROOT / "boards/RPI_PICO_W/limits.py", lib)
    shutil.copy(PROGRAM, tmp_path / "main.py")
    # A Pico has native code in its heap; the unix port does not.
    code_kb = -(-native.on_a_board(mpy.build(PICO.mpy_arch)) // 1024)
    port = free_port()
    command = micropython.command(32, PICO.heap_kb - code_kb, tmp_path / "main.py", [str(port)])
    broker = Program(command, tmp_path, micropython.environment(lib))
    try:
        broker.wait_for(lambda: len(broker.lines) == 2, "the broker to listen")
        assert int(broker.lines[1]) > 24 * 1024  # that deploy requires for clients
        client = Client(("127.0.0.1", port))
        assert client.connect(codec.connect("me")).code == 0
        client.subscribe("news", qos=2)
        for qos in (0, 1, 2):
            client.publish("news", b"x" * 500, qos)
            client.receive("news", b"x" * 500, qos)
        client.sock.close()
    finally:
        broker.process.kill()
        broker.process.wait()


def test_a_board_gets_the_listed_files_and_native_code_as_source(
    server: str, tmp_path: Path
) -> None:
    lib = installed(server, tmp_path / "flash")
    listed = json.loads((tmp_path / "built/package.json").read_text())
    assert listed["version"] == VERSION
    targets = [target for target, _ in listed["urls"]]
    assert targets == sorted(targets)
    there = {str(file.relative_to(lib)) for file in lib.rglob("*") if file.is_file()}
    assert there == set(targets)
    sources = {name for name in targets if name.endswith(".py")}
    assert sources == {f"slotmq/{name}.py" for name in NATIVE}
    for file in lib.rglob("*.mpy"):
        assert file.read_bytes()[2] >> 2 == 0, f"{file} is bound to an architecture"


@pytest.mark.parametrize("version", [None, VERSION])
def test_installing_from_the_index_gives_the_same(
    server: str, tmp_path: Path, version: str | None
) -> None:
    """`mpremote mip install --index URL slotmq`; a second time it fetches no file."""
    lib = installed(server, tmp_path / "flash")
    other = tmp_path / "other"
    other.mkdir()
    for times in range(2):
        board = Flash(other)
        mip._install_package(board, "slotmq", server, "/lib", version, True)
        assert contents(other / "lib") == contents(lib)
        for file in (tmp_path / "built/file").rglob("*") if not times else ():
            if file.is_file():
                file.unlink()  # it must not be fetched again
    assert len(board.hashed) == len(contents(lib))


def test_sources_have_their_lines_and_each_number_where_it_is_used(tmp_path: Path) -> None:
    """MicroPython inlines const() within one file only, and viper code cannot ask another."""
    told = CliRunner().invoke(main, ["build", "--mip", "--sources", str(tmp_path)])
    assert told.exit_code == 0, told.output
    found = mpy.sources("slotmq")
    listed = json.loads((tmp_path / "package.json").read_text())["urls"]
    assert {target for target, _ in listed} == set(found)
    for name, source in found.items():
        text = (tmp_path / name).read_text()
        assert text.count("\n") == source.read_text().count("\n")
        assert "slotmq.constants" not in text
    pump = (tmp_path / "slotmq/fast/pump_viper.py").read_text()
    assert "_NAP = const(5)" in pump and "(busy - 1) * _NAP" in pump


@pytest.mark.parametrize("words", [["--sources"], [], ["--mip", "--board", "RPI_PICO_W"]])
def test_either_board_or_mip(words: list[str], tmp_path: Path) -> None:
    told = CliRunner().invoke(main, ["build", *words, str(tmp_path)])
    assert told.exit_code == 2
    assert "--board" in told.output and "--mip" in told.output
