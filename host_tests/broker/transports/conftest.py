"""Brokers over all transports, on each runtime and path."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from ..tls.conftest import made
from .cells import DAILY, Cell
from .served import PATHS, TRANSPORTS, Served

CELLS = [
    pytest.param(cell, id=str(cell), marks=() if cell in DAILY else (pytest.mark.nightly,))
    for cell in map(Cell, *zip(*product(TRANSPORTS, PATHS), strict=True))
]


class Matrix:
    """The brokers, by runtime and path, and the transports that the tests took."""

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        self._folders = folders
        self._certs = made(folders.mktemp("certs"))
        self._served: dict[tuple[str, str], Served] = {}
        self._used: set[tuple[Served, str]] = set()

    def broker(self, runtime: str, path: str, transport: str) -> Served:
        if (runtime, path) not in self._served:
            folder = self._folders.mktemp(runtime)
            self._served[runtime, path] = Served(runtime, path, self._certs, folder)
        found = self._served[runtime, path]
        self._used.add((found, transport))
        return found

    def stop(self) -> None:
        """Stop all, and check which path has served each transport."""
        for served in self._served.values():
            served.stop()
        for served, transport in self._used:
            reads = served.reads(transport)
            assert (reads > 0) == (served.path == "fast"), (transport, served.path, reads)


@pytest.fixture(scope="session")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Matrix]:
    one = Matrix(tmp_path_factory)
    yield one
    one.stop()


@pytest.fixture(scope="session", params=CELLS)
def cell(request: pytest.FixtureRequest) -> Any:
    return request.param
