"""The matrix of the wire suite: each runtime, transport, and path (fast, or the handlers without
it). Every test runs over plain TCP on the fast path. The tests of a module take turns in the other
cells, so that each module runs in each cell on each runtime. Those of ALL run in all cells."""

from collections.abc import Iterator
from functools import cache
from inspect import signature
from itertools import product
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from _pytest.mark.structures import ParameterSet

from ..wire.process import RUNTIMES


class Cell(NamedTuple):
    """How a test's clients reach the broker, and which path serves them. It is called as a `Send`
    is: the relay takes what it gets in pieces."""

    transport: str
    path: str

    def __call__(self, sock: Any, data: bytes) -> None:
        sock.sendall(data)

    def __str__(self) -> str:
        return f"{self.transport}-{self.path}"


# In this order the tests of a module take them: the next one differs in transport and path
CELLS = (
    Cell("tls", "fast"),
    Cell("ws", "handlers"),
    Cell("wss", "fast"),
    Cell("plain", "handlers"),
    Cell("ws", "fast"),
    Cell("tls", "handlers"),
    Cell("wss", "handlers"),
)
DAILY = CELLS[0], CELLS[2]
SHIFT = {"cpython": 0, "micropython": 3}  # so that a test has another cell on each runtime

# Modules with the most that a transport can break
ALL = ("wire.test_malformed", "wire.test_publish", "wire.test_qos2", "wire.test_will")

_ITS_BROKER = "it starts its broker itself, which listens on TCP only"
# Modules, or tests, that stay on plain TCP and the fast path, and why
TCP_ONLY = {
    "wire.test_access": _ITS_BROKER,
    "wire.test_authorisation": _ITS_BROKER,
    "wire.test_fuzz": "websocket/test_fuzz.py and tls/test_floods.py are its like",
    "wire.test_guesses": _ITS_BROKER + "; the addresses of clients count",
    "wire.test_hooks": _ITS_BROKER,
    "wire.test_large.test_a_client_that_occupies_the_only_reassembly_buffer_is_disconnected": (
        "the order of two connections counts"
    ),
    "wire.test_large.test_a_reader_that_stops_loses_whole_qos_0_messages_only": "a relay reads on",
    "wire.test_many.test_2500_clients_connect_and_leave": "2,500 handshakes in a minute",
    "wire.test_spec": "no client",
    "wire.test_will.test_what_came_before_a_reset_counts": "it resets TCP",
    "wire5.test_packet_size.TestMaximumOfTheBroker."
    "test_the_refusal_is_a_connack_if_the_level_was_read": "who still writes by TLS reads nothing",
    "wire.test_session.test_sessions_expire_while_the_client_is_away": "so would its seconds",
}


def name_of(module: str) -> str:
    """Of a module as the tables here have it."""
    return ".".join(module.split(".")[-2:])


def of(module: ModuleType, name: str) -> list[tuple[str, Cell]]:
    """The runtimes and cells that this test (`test_x` or `TestC::test_x`) has."""
    suite = name_of(module.__name__)
    name = name.replace("::", ".")
    if suite.partition(".")[0] not in ("wire", "wire5"):
        return []
    if suite in TCP_ONLY or f"{suite}.{name}" in TCP_ONLY:
        return []
    names = [each for each in _tests(module) if f"{suite}.{each}" not in TCP_ONLY]
    if suite in ALL:
        return list(product(RUNTIMES, CELLS))
    turns = range(names.index(name), -(-len(CELLS) // len(names)) * len(names), len(names))
    return [
        (runtime, CELLS[(turn + SHIFT[runtime]) % len(CELLS)])
        for runtime in RUNTIMES
        for turn in turns
    ]


def parameters(module: ModuleType, name: str) -> Iterator[ParameterSet]:
    """The same, as parameters of a test."""
    for runtime, cell in of(module, name):
        is_daily = cell in DAILY and name_of(module.__name__) in ALL
        marks = () if is_daily else (pytest.mark.nightly,)
        yield pytest.param(runtime, cell, id=f"{runtime}-{cell}", marks=marks)


@cache
def _tests(module: ModuleType) -> list[str]:
    """The names of its tests, but for those that need nothing, so no client either."""
    kinds = {name: each for name, each in vars(module).items() if name.startswith("Test")}
    found = dict(vars(module))
    for kind in kinds:
        found |= {f"{kind}.{name}": getattr(kinds[kind], name) for name in dir(kinds[kind])}
    return [
        name
        for name, each in found.items()
        if name.rpartition(".")[2].startswith("test_")
        and signature(each).parameters.keys() - {"self"}
    ]
