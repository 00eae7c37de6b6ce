"""`slotmq telemetry demo`: from recording boards to a report, all on this computer.

The boards are brokers on loopback that record. Sensors publish through them, a power cut (kill -9)
ends each boot, and each boot is harvested over MQTT. The harvest becomes tables and a report,
together with the last ten days of a greenhouse (season/greenhouse.py) with a few faults, which the
report names.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import click
import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion

from ..errors import ToolError
from ..ports import LOOPBACK, free_port

BOARDS, ROUNDS = 2, 60
_TIMEOUT_S = 60.0
_CONF = """
listener {port} {host}
allow_anonymous true
record demo/#
record_events true
record_location {folder}
record_segment_size 4096
record_budget 262144
record_flush_interval 1
remote_admin true
"""


class Board:
    """A broker that records, as a process of its own."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.port = free_port()
        self._conf = folder / "slotmq.conf"
        record = (folder / "record").absolute()
        self._conf.write_text(_CONF.format(port=self.port, host=LOOPBACK, folder=record))
        self._log = folder / "log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the broker and wait until it listens."""
        command = [sys.executable, "-m", "slotmq_tools.cli", "run", "-c", str(self._conf)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        wait(self._listens, f"the broker does not start: see {self._log}")

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((LOOPBACK, self.port)) == 0

    def cut_power(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def wait(condition: Callable[[], bool], complaint: str) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    while not condition():
        if time.monotonic() > deadline:
            raise ToolError(complaint)
        time.sleep(0.05)


def publish(board: Board, place: str, rounds: range, random: Random) -> int:
    """A thermometer, a weather station and a meter: one message of each per round."""
    client = paho.Client(CallbackAPIVersion.VERSION2, client_id=f"sensors-{place}")
    client.will_set(f"demo/{place}/state", b"gone", 1)
    client.connect(LOOPBACK, board.port)
    client.loop_start()
    for number in rounds:
        weather = {"t": round(random.gauss(18, 3), 2), "humidity": random.randrange(30, 90)}
        sent = (
            (f"demo/{place}/thermometer", f"{random.gauss(20, 0.5):.2f}", 0),
            (f"demo/{place}/weather", json.dumps(weather), 1),
            (f"demo/{place}/meter", json.dumps({"n": number, "wh": 40 * number}), 2),
        )
        for topic, payload, qos in sent:
            client.publish(topic, payload, qos).wait_for_publish(_TIMEOUT_S)
        time.sleep(0.02)
    client.disconnect()
    client.loop_stop()
    return 3 * len(rounds)


def recorded(board: Board, harvest: Callable[[Board], None], count: Callable[[], int],
             wanted: int) -> None:  # fmt: skip
    """Harvest until the records that wait for the flush interval have come, too."""
    for _ in range(20):
        harvest(board)
        if count() >= wanted:
            return
    raise ToolError(f"only {count()} of {wanted} messages were harvested")


def messages(folder: Path) -> int:
    """How many messages of the boards a harvest folder has, each counted once."""
    from . import decode, manifest

    found = set()
    for part in (part for some in manifest.parts(manifest.read(folder)) for part in some):
        for batch in decode.frames_of(folder, part):
            rows = batch.select(["board", "boot", "seq", "topic", "type"]).to_pylist()
            found |= {
                (row["board"], row["boot"], row["seq"])
                for row in rows
                if row["type"] == 2 and row["topic"].startswith("demo/")
            }
    return len(found)


def field(folder: Path, harvest: Callable[[Board], None]) -> int:
    """Boards record and are harvested; how many messages went through them."""
    random, sent = Random(1), 0
    for number in range(BOARDS):
        board = Board(folder / f"board-{number}")
        for boot in range(2):
            board.start()
            try:
                rounds = range(boot * ROUNDS, (boot + 1) * ROUNDS)
                sent += publish(board, f"site-{number}", rounds, random)
                recorded(board, harvest, lambda: messages(folder / "harvest"), sent)
            finally:
                board.cut_power()
    return sent


@click.command(short_help="Record, harvest, make tables and a report, on this computer.")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--greenhouse/--no-greenhouse", "generated", default=True,
              help="Add ten days of three simulated boards in a greenhouse [yes].")  # fmt: skip
@click.pass_context
def demo(ctx: click.Context, folder: Path, generated: bool) -> None:
    """Start brokers that record, harvest them, and make tables and a report.

    Everything is written to FOLDER, which must be empty or not exist.
    """
    from ..harvest.command import harvest as fetch
    from ..harvest.manifest import locked
    from . import command, manifest, names
    from .season import greenhouse
    from .season.board import DAY

    if folder.exists() and any(folder.iterdir()):
        raise ToolError(f"{folder} is not empty")
    command.installed("pyarrow", "deltalake", "cbor2", "altair", "jinja2", "vl_convert")
    bundles, tables, page = folder / "harvest", folder / "tables", folder / "report.html"

    def harvest(board: Board) -> None:
        ctx.invoke(fetch, folder=bundles, address=(LOOPBACK, board.port), set_time=True)

    sent = field(folder, harvest)
    click.echo(f"demo: {BOARDS} boards recorded {sent} messages and a power cut in each boot")
    with locked(bundles) as lines:
        ids = sorted({board for board, _, _ in lines.copies()})
    called = "".join(f'[{board}]\nname = "bench {i}"\nsite = "bench"\n\n'
                     for i, board in enumerate(ids, 1))  # fmt: skip
    if generated:
        start = (int(time.time() * 1000) // DAY - greenhouse.DAYS) * DAY
        grown = greenhouse.grow(bundles, len(manifest.read(bundles)), start=start)
        click.echo(f"greenhouse: {len(grown.taken):,} records of {len(greenhouse.NAMES)} boards")
        called += greenhouse.TOML
    tables.mkdir()
    (tables / names.FILE).write_text(called)
    ctx.invoke(command.ingest, harvest=bundles, tables=tables)
    ctx.invoke(command.report, tables=tables, file=page)
