"""Starts and ends each broker on a free port of loopback.

Their configurations are comparable: TCP_NODELAY, no authentication, queues larger than the load
generator's window, nothing on disk.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from slotmq_tools import boards, micropython
from slotmq_tools.errors import ToolError
from slotmq_tools.pack import mpy
from slotmq_tools.ports import free_port
from slotmq_tools.run import launcher

from ..peers import mosquitto
from . import tls
from .client import Address

HOST = "127.0.0.1"
_BOARD = "HOST"
_START_S = 240  # enough for valgrind on a busy machine
_STOP_S = 10
# Records everything in files
RECORDING = "record #\nrecord_location {folder}/record\n"
_LISTENING = "0A"  # in /proc/net/tcp

_MOSQUITTO_CONF = """\
listener {port} {host}
{tls}{access}set_tcp_nodelay true
max_queued_messages 0
max_inflight_messages 1000
persistence false
log_dest none
user root
"""


@dataclass(frozen=True)
class Site:
    """Port and folder with which a broker is started."""

    port: int
    folder: Path
    conf: Path | None = None  # a slotmq.conf


@dataclass(frozen=True)
class Start:
    """A command line and its environment."""

    command: list[str]
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))


@dataclass(frozen=True)
class Broker:
    """A broker by its name."""

    name: str
    start: Callable[[Site], Start]

    @property
    def is_ours(self) -> bool:
        """Whether it is slotmq."""
        return self.name.startswith("slotmq")


@dataclass(frozen=True)
class Running:
    """A running broker."""

    broker: Broker
    pid: int
    address: Address


def slotmq_on_micropython(bits: int, port: int, conf: Path | None = None) -> Start:
    """slotmq with the limits of HOST, started without tools/run/launcher.py."""
    found = micropython.find(bits)
    argv = _slotmq_options(port, conf)
    heap_kb = boards.load(_BOARD).heap_kb
    command = micropython.command(bits, heap_kb, launcher.boot(heap_kb), argv)
    return Start(command, micropython.environment(mpy.build_for(found)))


def _slotmq_on_cpython(site: Site) -> Start:
    program = str(Path(sys.executable).with_name("slotmq"))
    return Start([program, "run", *_slotmq_options(site.port, site.conf)])


def _slotmq_options(port: int, conf: Path | None) -> list[str]:
    # With TLS or users the listener is one of the configuration, which running() has written.
    options = ["-c", str(conf)] if conf else []
    where = [] if tls.is_used() else ["-p", str(port), "--host", HOST]
    return [*where, "--board", _BOARD, *options]


def _mosquitto(site: Site) -> Start:
    conf = site.folder / "mosquitto.conf"
    text = _MOSQUITTO_CONF.format(
        port=site.port, host=HOST, tls=tls.lines(), access=tls.access("mosquitto")
    )
    conf.write_text(text)
    return Start([*mosquitto.broker(), "-c", str(conf)])


BROKERS = (
    Broker("slotmq-cpython", _slotmq_on_cpython),
    Broker("slotmq-micropython32", lambda site: slotmq_on_micropython(32, site.port, site.conf)),
    Broker("mosquitto", _mosquitto),
)


def named(text: str) -> Broker:
    """The broker that the user names by NAME=COMMAND, with {port} in the command.

    ToolError: it is not of that form, the name is taken, or there is no such program."""
    name, _, command = text.partition("=")
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ToolError(f"{text!r}: {error}") from None
    if not name or not words or "{port}" not in command:
        raise ToolError(f"{text!r} is not NAME=COMMAND with {{port}} in the command")
    if any(each.name == name for each in BROKERS) or name.startswith("slotmq"):
        raise ToolError(f"{name} is a name of the benchmark's own: use another one")
    if not shutil.which(words[0]):
        raise ToolError(f"{name}: there is no program {words[0]!r}")

    def start(site: Site) -> Start:
        return Start([word.replace("{port}", str(site.port)) for word in words])

    return Broker(name, start)


@contextmanager
def running(broker: Broker, conf: str = "") -> Iterator[Running]:
    """The broker, until the block ends; {folder} in `conf` is replaced by its folder."""
    port = free_port()
    with TemporaryDirectory(prefix="slotmq-bench-") as folder:
        text = "log_dest none\n" + conf.format(folder=folder)
        if tls.is_used():
            text += f"{tls.access('slotmq')}listener {port} {HOST}\n{tls.lines()}"
        else:
            text += "allow_anonymous true\n"
        file = Path(folder) / "slotmq.conf"
        file.write_text(text)
        start = broker.start(Site(port, Path(folder), file))
        with process(start, port, Path(folder) / "log") as child:
            yield Running(broker, child.pid, (HOST, port))


@contextmanager
def process(start: Start, port: int, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process, from when it listens on the port until the block ends; its output is in log."""
    with log.open("wb") as output:
        child = subprocess.Popen(
            start.command,
            env=start.environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        _wait_until_listening(child, port, log)
        yield child
    finally:
        _end(child)


def _end(child: subprocess.Popen[bytes]) -> None:
    child.send_signal(signal.SIGTERM)
    try:
        child.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _wait_until_listening(child: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Wait without connecting, which would cost instructions."""
    end = time.monotonic() + _START_S
    while not _listens(port):
        if child.poll() is not None:
            last = log.read_text(errors="replace").splitlines()[-1:] or ["no output"]
            raise ToolError(f"it ended at the start with status {child.returncode}: {last[0]}")
        if time.monotonic() > end:
            raise ToolError(f"it does not listen within {_START_S} s")
        time.sleep(0.01)


def _listens(port: int) -> bool:
    wanted = f":{port:04X}"
    rows = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    return any(row[1].endswith(wanted) and row[3] == _LISTENING for row in rows)
