"""Brokers for the tests: processes of their own, on both runtimes, shared where they can be.

A test that takes `mqtt` runs four times: on CPython and on 32-bit MicroPython, with
what its clients send sent whole and, by `make nightly`, byte by byte. Its clients speak
MQTT 3.1.1; with `@each_version()` the test runs with clients of 5.0, too.
Its clients reach the broker by plain TCP; by broker/transports/cells.py it also runs
over TLS, WebSocket and both, and without the fast path.
`@pytest.mark.config(text)` gives it a broker with that configuration;
`@pytest.mark.own_broker` one that no other test uses. `--runtimes mosquitto` tries the
tests themselves on a broker we trust.
"""

import gc
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from host_tests.broker.tls.conftest import made
from host_tests.broker.transports import cells
from host_tests.broker.transports.cells import Cell
from host_tests.broker.transports.served import Over
from host_tests.broker.wire.client import Send, byte_by_byte, whole
from host_tests.broker.wire.process import PEER, RUNTIMES, BrokerProcess
from host_tests.broker.wire.scene import Scene
from host_tests.broker.wire5.scene import Scene as Scene5
from host_tests.broker.wire5.scene import SceneOfEachVersion
from host_tests.support.program import Run, Start

pytest_plugins = ["pytester"]  # for the tests of the plugin

# How fast the machine is at the moment is no result of a test.
settings.register_profile("slotmq", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("slotmq")

# A shell lets its background jobs ignore Ctrl-C; every broker that a test starts would too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

CHUNKINGS = {"whole": whole, "bytes": byte_by_byte}
MARKS = {"whole": (), "bytes": (pytest.mark.nightly,)}

# Beside byte by byte: planted faults, long properties, and what takes minutes, as measured.
NIGHTLY = (
    "broker/heap/",
    "broker/test_persistence.py",
    "broker/test_twins.py",
    "broker/test_unit_on_micropython.py",
    "broker/tls/test_floods.py",
    "broker/websocket/test_fuzz.py",
    "broker/wire/test_authorisation.py",
    "broker/wire/test_fuzz.py",
    "broker/wire/test_spec.py",
    "host/firmware/test_safe_mode.py",
    "host/sim_users/test_random.py",
    "host/test_inspect.py",
    "host/deploy/test_backup_flash_journal.py",
    "host/tools/test_firmware_types.py",
    "sim/",
    "telemetry/tests/harvest/test_damaged",
    "telemetry/tests/harvest/test_wrong_answers.py",
    "telemetry/tests/spark/",
)

MARKERS = (
    "spec(id, ..., of='3.1.1'): the statements of the standard that the test would see broken",
    "config(text): the configuration of the test's broker",
    "own_broker: the test's broker is started for it and stopped after it",
    "waits: the test waits for time to pass, and is run with packets sent whole only",
    "whole: packets are sent whole only, since the test is about many, and not how they are cut",
    "nightly: is worth it once a day only, see `make nightly`",
    "ours(why): not to be tried on the peer, which rightly does it otherwise",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--runtimes",
        default=",".join(RUNTIMES),
        help=f"what the wire tests run on, of {', '.join(RUNTIMES)} and {PEER}",
    )


def pytest_configure(config: pytest.Config) -> None:
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)


def pytest_collection_finish() -> None:
    # A broker collects garbage often, and what pytest has collected, 9,000 tests, is none.
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    gc.unfreeze()  # some libraries look for leaks at the end


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "runtime" not in metafunc.fixturenames:
        return
    runtimes = metafunc.config.getoption("--runtimes").split(",")
    if "send" not in metafunc.fixturenames:
        metafunc.parametrize("runtime", runtimes, scope="session")
        return
    is_whole = any(map(metafunc.definition.get_closest_marker, ("waits", "whole")))
    both = [
        pytest.param(runtime, CHUNKINGS[name], id=f"{runtime}-{name}", marks=MARKS[name])
        for runtime in runtimes
        for name in (["whole"] if is_whole else CHUNKINGS)
    ]
    more = cells.parameters(metafunc.module, metafunc.definition.nodeid.partition("::")[2])
    both += [each for each in more if each.values[0] in runtimes]
    metafunc.parametrize("runtime,send", both, scope="session")


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what is nightly; skip slotmq-only tests with `--runtimes mosquitto`."""
    for item in items:
        if item.nodeid.removeprefix("host_tests/").startswith(NIGHTLY):
            item.add_marker("nightly")
    if config.getoption("--runtimes") == PEER:
        ours = [item for item in items if item.get_closest_marker("ours")]
        config.hook.pytest_deselected(items=ours)
        items[:] = [item for item in items if item not in set(ours)]


class Brokers:
    """The brokers that run, by runtime, configuration, and cell of the matrix."""

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        self._folders = folders
        self._certs: Path | None = None
        self._running: dict[tuple[str, str, Cell | None], BrokerProcess] = {}

    def start(self, runtime: str, text: str, cell: Cell | None) -> BrokerProcess:
        folder: Path = self._folders.mktemp(runtime)
        if cell is None:
            return BrokerProcess(runtime, text, folder)
        self._certs = self._certs or made(self._folders.mktemp("certs"))
        return Over(runtime, cell, self._certs, folder, text)

    def get(self, runtime: str, text: str, cell: Cell | None) -> BrokerProcess:
        key = runtime, text, cell
        broker = self._running.get(key)
        if broker is None or not broker.alive():
            broker = self._running[key] = self.start(*key)
        return broker

    def stop(self) -> None:
        with ThreadPoolExecutor() as pool:
            for done in [pool.submit(broker.stop) for broker in self._running.values()]:
                done.result()


@pytest.fixture(scope="session")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    pool = Brokers(tmp_path_factory)
    yield pool
    pool.stop()


@pytest.fixture
def broker(
    request: pytest.FixtureRequest, brokers: Brokers, runtime: str
) -> Iterator[BrokerProcess]:
    marker = request.node.get_closest_marker("config")
    text = marker.args[0] if marker else ""
    send = request.node.callspec.params.get("send")
    where = runtime, text, send if isinstance(send, Cell) else None
    if not request.node.get_closest_marker("own_broker"):
        shared = brokers.get(*where)
        yield shared
        assert shared.alive(), f"the broker died: {shared.complaints()}"
        return
    own = brokers.start(*where)
    yield own
    if own.alive():
        own.stop()
    else:
        own.finish()


@pytest.fixture
def mqtt(request: pytest.FixtureRequest, broker: BrokerProcess, send: Send) -> Iterator[Scene]:
    version = getattr(request, "param", "3.1.1")
    scene = SceneOfEachVersion(broker, send) if version == "5.0" else Scene(broker, send)
    yield scene
    scene.close()


@pytest.fixture
def mqtt5(broker: BrokerProcess, send: Send) -> Iterator[Scene]:
    """What `mqtt` is for older versions, with clients of MQTT 5.0 alone."""
    scene = Scene5(broker, send)
    yield scene
    scene.close()


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic that no other test uses."""
    scene: Scene = request.getfixturevalue("mqtt" if "mqtt" in request.fixturenames else "mqtt5")
    return scene.topic


@pytest.fixture
def start(tmp_path: Path, runtime: str) -> Iterator[Start]:
    """Starts the command, as often as a test needs it."""
    runs: list[Run] = []

    def start_one(*options: object) -> Run:
        folder = tmp_path / str(len(runs))
        folder.mkdir()
        runs.append(Run(folder, runtime, *options))
        return runs[-1]

    yield start_one
    for run in runs:
        run.process.kill()
        run.process.wait()
