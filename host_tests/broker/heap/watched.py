"""A broker whose heap is watched: serve_micropython.py holds it locked and counts."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

from slotmq_dev.heap.process import Process

SERVE = Path(__file__).with_name("serve_micropython.py")
UNIT = Path(__file__).parents[1] / "unit/support"  # where the script's tables.py is
BOARD, HEAP = "RPI_PICO_W", 160 * 1024
TIMEOUT_S = 10.0
NOISE = 160  # bytes that the collector keeps for what looks like a pointer and is none


class Watched(Process):
    """32-bit MicroPython with a board's limits; clients connect over real sockets."""

    def __init__(self, heap: int = HEAP, conf: str = "") -> None:
        super().__init__(SERVE, BOARD, heap, UNIT, packed=False, conf=conf)
        self.rows()

    def counts(self) -> dict[str, int]:
        """The entries in each table, and the heap in use as "used"."""
        return {name: number for _, name, number in self.ask(b"c")}

    def alone(self) -> dict[str, int]:
        """The counts once no connection is left, and no module that was loaded on demand."""
        deadline = time.monotonic() + TIMEOUT_S
        while (found := self.counts())["connections"] or found["loaded"]:
            assert time.monotonic() < deadline, found
        return found

    def unloaded(self) -> dict[str, int]:
        """The counts once the modules that CONNECT and SUBSCRIBE loaded are dropped."""
        deadline = time.monotonic() + TIMEOUT_S
        while (found := self.counts())["loaded"]:
            assert time.monotonic() < deadline, found
        return found

    @contextlib.contextmanager
    def locked(self) -> Iterator[dict[str, int]]:
        """Nothing may allocate meanwhile. -> filled at the end with what was counted.

        It begins once no module that was loaded on demand is left."""
        seen: dict[str, int] = {}
        self.unloaded()
        self.ask(b"b")
        yield seen
        seen.update((name, number) for _, name, number in self.ask(b"e"))


def assert_restored(before: dict[str, int], after: dict[str, int]) -> None:
    """Every table is as before, and so is the heap in use."""
    assert abs(after.pop("used") - before.pop("used")) <= NOISE
    assert after == before
