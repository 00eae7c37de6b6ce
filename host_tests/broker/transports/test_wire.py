"""A sample of the wire suite in a matrix of the runtimes, the transports, and the fast path or
the handlers without it. Over TLS the first bytes of what is sent are in records of their own, over
WebSocket in fragments of their own."""
# ruff: noqa: F403 - the tests are those of the wire suite

from collections import defaultdict
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from ..tls.conftest import made
from ..wire.scene import Scene
from ..wire.test_malformed import *
from ..wire.test_publish import *
from ..wire.test_qos2 import *
from ..wire.test_will import *
from ..wire5.scene import SceneOfEachVersion
from .served import PATHS, TRANSPORTS, Served

del test_what_came_before_a_reset_counts  # noqa: F821 - it resets TCP

DAILY = {("tls", "fast"), ("wss", "fast")}
CELLS = [
    pytest.param(cell, id="-".join(cell), marks=() if cell in DAILY else (pytest.mark.nightly,))
    for cell in product(TRANSPORTS, PATHS)
]


class Matrix:
    """The brokers, by runtime and path, and the transports that the tests took."""

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        self._folders = folders
        self._certs = made(folders.mktemp("certs"))
        self._served: dict[tuple[str, str], Served] = {}
        self._used: defaultdict[Served, set[str]] = defaultdict(set)

    def broker(self, runtime: str, path: str, transport: str) -> Served:
        if (runtime, path) not in self._served:
            folder: Path = self._folders.mktemp(runtime)
            self._served[runtime, path] = Served(runtime, path, self._certs, folder)
        found = self._served[runtime, path]
        self._used[found].add(transport)
        return found

    def stop(self) -> None:
        """Stop all, and check which path has served each transport."""
        for served, used in self._used.items():
            served.stop()
            for transport in used:
                reads = served.reads(transport)
                assert (reads > 0) == (served.path == "fast"), (transport, served.path, reads)


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Matrix]:
    one = Matrix(tmp_path_factory)
    yield one
    one.stop()


@pytest.fixture(scope="module", params=CELLS)
def cell(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def mqtt(
    request: pytest.FixtureRequest, matrix: Matrix, runtime: str, cell: tuple[str, str]
) -> Iterator[Scene]:
    if request.node.get_closest_marker("config") or request.node.get_closest_marker("own_broker"):
        pytest.skip("it needs a broker of its own")
    transport, path = cell
    served = matrix.broker(runtime, path, transport)
    relay: Any = served if transport == "plain" else served.relay(transport)
    is_5 = getattr(request, "param", "3.1.1") == "5.0"
    scene = (SceneOfEachVersion if is_5 else Scene)(relay, _whole)
    yield scene
    scene.close()
    if relay is not served:
        relay.close()
    assert served.alive(), served.complaints()


def _whole(sock: Any, data: bytes) -> None:
    sock.sendall(data)
