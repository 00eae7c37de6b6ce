"""`mpremote mip install` from a local web server: the output of `slotmq build --mip`, compiled and
as sources."""

import ast
import functools
import json
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from slotmq_dev.emulator.board import Board
from slotmq_tools.deploy.repl import Repl
from slotmq_tools.pack import mip

ROOT = Path(__file__).parents[2]
LEFT_OUT = ("bridge", "journal", "recorder")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)
# Sources that the board compiles take most of its heap, so the tables are small. Boards of this
# size should use `slotmq deploy` or `slotmq build`.
PROGRAM = """
import gc
gc.threshold(4096)
from slotmq import Broker, Limits, Settings
small = dict(connections=1, sessions=1, message_bytes=1024, max_packet=512, tx_bytes=256,
    messages=8, deliveries=16, retained=8, subscriptions=8, nodes=16, topic_bytes=64)
gc.collect()
broker = Broker(Limits(**small), Settings(mqtt_versions=3, sys_interval=0))
broker.publish("state", "on", retain=True)
print(broker.listen("0.0.0.0", 1883), broker.retained.names.count())
"""


# Compiled but for the native code: the heap suffices for a Pico W's tables.
COMPILED = """
import gc
from limits import LIMITS
from slotmq import Broker
gc.collect()
received = []
broker = Broker(LIMITS)
broker.subscribe("state/+", lambda *message: received.append(message), 1)
for qos in (0, 1, 2):
    broker.publish("state/a", "on", qos)
    broker.turn(0)
print(broker.listen("0.0.0.0", 1883), received)
"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """A web server with the folder; yields its address."""
    handler = functools.partial(Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def installed(board: Board, folder: Path) -> set[str]:
    """Install with mpremote from the folder's package.json; -> the files in /lib."""
    with serving(folder) as address:
        words = ["connect", board.device, "mip", "install", f"{address}/package.json"]
        done = subprocess.run(
            [sys.executable, "-m", "mpremote", *words],
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    with Repl(board.device) as repl:
        there = {path for path in repl.hashes() if path.startswith("/lib/")}
    targets = json.loads((folder / "package.json").read_text())["urls"]
    assert there == {f"/lib/{target}" for target, _ in targets}
    return there


def shortened(folder: Path) -> Path:
    """The sources without comments and docstrings, and without what PROGRAM does not load: as a
    whole they are for boards with more flash than this one."""
    folder.mkdir()
    mip.write(folder, sources=True)
    for name in LEFT_OUT:
        shutil.rmtree(folder / "slotmq" / name)
    package = json.loads((folder / "package.json").read_text())
    package["urls"] = [pair for pair in package["urls"] if (folder / pair[0]).exists()]
    (folder / "package.json").write_text(json.dumps(package))
    for file in (folder / "slotmq").rglob("*.py"):
        tree = ast.parse(file.read_text())
        for node in ast.walk(tree):
            if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
                node.body[:1] = [] if node.body[1:] else [ast.Pass()]
        indented = re.compile("^( {4})+", re.MULTILINE)
        text = indented.sub(lambda found: " " * (len(found[0]) // 4), ast.unparse(tree))
        file.write_text(text)
        assert ast.dump(ast.parse(text)) == ast.dump(tree)
    return folder


@pytest.mark.timeout(300)
def test_sources_are_installed_and_run(tmp_path: Path) -> None:
    sources = shortened(tmp_path / "sources")
    with Board(tmp_path) as board:
        assert "/lib/slotmq/broker.py" in installed(board, sources)
        with Repl(board.device) as repl:
            assert repl.run(PROGRAM) == "('0.0.0.0', 1883) 1\r\n"


def test_the_output_of_build_mip_runs_with_the_boards_limits(tmp_path: Path) -> None:
    built = tmp_path / "built"
    built.mkdir()
    mip.write(built)
    with Board(tmp_path) as board:
        there = installed(board, built)
        assert {"/lib/slotmq/core.mpy", "/lib/slotmq/viper.py"} <= there
        with Repl(board.device) as repl:
            repl.write("/limits.py", (ROOT / "boards/RPI_PICO_W/limits.py").read_bytes())
            said = repl.run(COMPILED)
    received = [("state/a", b"on", qos, 0) for qos in (0, 1, 1)]
    assert said == f"('0.0.0.0', 1883) {received}\r\n"


def test_the_command_that_runs_an_emulated_board(tmp_path: Path) -> None:
    """See docs/board.md."""
    words = [sys.executable, "-m", "slotmq_dev.emulator", "--run", str(tmp_path / "board")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        first, command = process.stdout.readline(), process.stdout.readline().split()
        assert "REPL" in first
        device = command[command.index("--port") + 1]
        with Repl(device) as repl:
            assert repl.run("print(6 * 7)") == "42\r\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    assert (tmp_path / "board/flash.bin").stat().st_size == 2 << 20
