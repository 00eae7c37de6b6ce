"""Fixtures of the live source's tests."""

import pytest

from slotmq_tools.telemetry import ring_fetch, ring_source

from .driver import Ring


@pytest.fixture(autouse=True)
def in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Driver and executors reach the boards of driver.Ring, and none at first."""
    monkeypatch.setattr(ring_source, "Ring", Ring)
    monkeypatch.setattr(ring_fetch, "Ring", Ring)
    monkeypatch.setattr(ring_fetch, "_PAUSE_S", 0)
    Ring.boards, Ring.silent = (), frozenset()


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The segments that the driver asks for, of all boards."""
    asked: list[int] = []
    true = Ring.read

    def counted(ring: Ring, board: str, segment: int, begin: int, end: int | None) -> bytes:
        asked.append(segment)
        return true(ring, board, segment, begin, end)

    monkeypatch.setattr(Ring, "read", counted)
    return asked
