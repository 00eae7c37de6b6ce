"""`mpremote mip install` of lib/package.json, from a server on this computer."""

import functools
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from slotmq_tools.deploy.repl import Repl
from slotmq_tools.emulator.board import Board

LIB = Path(__file__).parents[2] / "lib"
# As sources, compiled on the board, the modules take most of its heap: the tables are small.
# (A board of this size gets what `slotmq deploy` or `slotmq build` has compiled.)
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


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    """Where lib/ is served."""
    handler = functools.partial(Quiet, directory=str(LIB))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{serving.server_address[1]}"
        serving.shutdown()


def test_it_installs_and_runs(server: str, tmp_path: Path) -> None:
    with Board(tmp_path) as board:
        words = ["connect", board.device, "mip", "install", f"{server}/package.json"]
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
            targets = json.loads((LIB / "package.json").read_text())["urls"]
            assert there == {f"/lib/{target}" for target, _ in targets}
            assert repl.run(PROGRAM) == "('0.0.0.0', 1883) 1\r\n"
