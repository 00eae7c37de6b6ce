"""`make bench-starts`: how long a broker takes to start and to stop, as a test would have it.

A start is over when a client can connect, a stop when the port is free and, for a process, when
that has ended. slotmq and amqtt run in this process, as in a test; mosquitto and aedes in one of
their own. A broker that cannot be installed here is told and left out. Writes the rows of the
table in docs/pytest.md.
"""

import asyncio
import logging
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import click

from slotmq_tools.errors import ToolError
from slotmq_tools.ports import free_port
from slotmq_tools.testing.mqtt import Mqtt

from . import brokers
from .versions import aedes_version, mosquitto_version

_PAGE = Path(__file__).resolve().parents[2] / "docs/pytest.md"
_HEAD = "| broker | runs | start, ms | stop, ms | what a test sees of it |\n"
_RULE = "|---|---|---:|---:|---|\n"
_STOP_S = 10
_POLL_S = 0.0005
_TEST_S = 0.05  # mosquitto may miss a signal that comes sooner
Measured = tuple[float, float]  # seconds of a start, and of the stop


def slotmq() -> Measured:
    began = time.perf_counter()
    mqtt = Mqtt()
    ready = time.perf_counter()
    _connect(mqtt.port)
    ended = time.perf_counter()
    mqtt.close()
    return ready - began, time.perf_counter() - ended


def amqtt() -> Measured:
    """Its start in the loop of a test, without that of the loop."""
    from amqtt.broker import Broker

    port = free_port()
    config = {
        "listeners": {"default": {"type": "tcp", "bind": f"{brokers.HOST}:{port}"}},
        "plugins": {"amqtt.plugins.authentication.AnonymousAuthPlugin": {}},
    }

    async def program() -> Measured:
        began = time.perf_counter()
        broker = Broker(config)
        await broker.start()
        ready = time.perf_counter()
        _connect(port)
        ended = time.perf_counter()
        await broker.shutdown()
        return ready - began, time.perf_counter() - ended

    return asyncio.run(program())


def process(name: str) -> Measured:
    """A broker of brokers.py as a process."""
    (broker,) = (one for one in brokers.BROKERS if one.name == name)
    with TemporaryDirectory(prefix="slotmq-bench-") as folder:
        port = free_port()
        start = broker.start(brokers.Site(port, Path(folder)))
        began = time.perf_counter()
        child = subprocess.Popen(
            start.command,
            env=start.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            while not _connect(port):
                if child.poll() is not None:
                    raise ToolError(f"it ended at the start with status {child.returncode}")
                time.sleep(_POLL_S)
            ready = time.perf_counter()
            time.sleep(_TEST_S)
            ended = time.perf_counter()
            child.send_signal(signal.SIGTERM)
            child.wait(_STOP_S)
            return ready - began, time.perf_counter() - ended
        finally:
            child.kill()
            child.wait()


def _connect(port: int) -> bool:
    try:
        socket.create_connection((brokers.HOST, port), 1).close()
    except ConnectionRefusedError:
        return False
    return True


# Name, version, where it runs, a start and stop, what a test sees
SUBJECTS: dict[str, tuple[Callable[[], str], str, Callable[[], Measured], str]] = {
    "slotmq": (
        lambda: "`Mqtt()`",
        "in a thread of the test",
        slotmq,
        "this page",
    ),
    "amqtt": (
        lambda: metadata.version("amqtt"),
        "in the test's asyncio loop",
        amqtt,
        "its plugins' events",
    ),
    "mosquitto": (
        mosquitto_version,
        "a process",
        lambda: process("mosquitto"),
        "its log, `$SYS`",
    ),
    "aedes": (
        aedes_version,
        "a process of Node.js",
        lambda: process("aedes"),
        "its events, in Node.js only",
    ),
}


def row(name: str, rounds: int) -> str:
    """The row of the table. Exception: it cannot be installed or started here."""
    version, where, measure, sees = SUBJECTS[name]
    label = f"{name} {version()}"
    measure()  # imports, and what the system caches
    found = [measure() for _ in range(rounds)]
    start, stop = (median(times) * 1000 for times in zip(*found, strict=True))
    return f"| {label} | {where} | {_ms(start)} | {_ms(stop)} | {sees} |\n"


def _ms(value: float) -> str:
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"


def written(page: str, rows: list[str]) -> str:
    """The page with these rows in its table."""
    before, _, after = page.partition(_HEAD + _RULE)
    rest = after.splitlines(keepends=True)
    while rest and rest[0].startswith("|"):
        del rest[0]
    return "".join([before, _HEAD, _RULE, *rows, *rest])


@click.command()
@click.option("--broker", "names", type=click.Choice(list(SUBJECTS)), multiple=True)
@click.option("--rounds", type=click.IntRange(1), default=21, show_default=True)
def main(names: tuple[str, ...], rounds: int) -> None:
    """Measure starts and stops; a complete run writes the table of docs/pytest.md."""
    logging.disable(logging.CRITICAL)
    rows, missing = [], []
    for name in names or SUBJECTS:
        try:
            rows.append(row(name, rounds))
            print(rows[-1], end="")
        except (ImportError, OSError, ToolError, metadata.PackageNotFoundError) as error:
            missing.append(f"{name}: not measured: {error}")
    print(*missing, sep="\n", file=sys.stderr)
    if not names and not missing:
        _PAGE.write_text(written(_PAGE.read_text(), rows))
    sys.exit(bool(missing))


if __name__ == "__main__":
    main()
