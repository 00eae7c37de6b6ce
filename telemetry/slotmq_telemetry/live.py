"""`slotmq telemetry live`: harvests boards again and again, and makes tables of what has come.

The harvest folder is the log: what lies there is what tables are made of. Each step (a bundle and
its line, a transaction of a table) is done or not, and is repeated if it was not; so every record
is in the tables once, whichever process is killed, and when. Of the segment that a board is still
writing, the beginning lies in partial/ until the board has begun the next one, and bronze has it
in a file that each round replaces.

A board or broker that does not answer is left out, for five seconds at first and each time twice
as long, up to two minutes; others go on meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

import click

from slotmq_tools.deploy.mqtt_client import Login
from slotmq_tools.errors import ToolError, count, shown

from . import bronze, build
from .engine import Engine
from .harvest import collect, network
from .harvest.manifest import locked
from .harvest.store import Store
from .lake import Lake
from .schemas import BRONZE

FIRST_S, SILENT_S = 5.0, 120.0  # until the next attempt, at first and at most
Address = tuple[str, int]


@dataclass
class Field:
    """The boards behind some brokers, and who of them does not answer."""

    brokers: Sequence[Address]
    login: Login
    only: frozenset[str] = frozenset()  # boards; none: all
    # Who did not answer: when to ask again, and how long that is
    _left: dict[tuple[Address, str], tuple[float, float]] = field(default_factory=dict)
    _has_answered: bool = False
    # One connection for all rounds: a board that records has a record of each connection
    _rings: dict[Address, network.Ring] = field(default_factory=dict)

    def fetch(self, folder: Path) -> None:
        """Put what is new into the harvest folder; ToolError if no broker has ever answered."""
        failed = []
        for broker in self.brokers:
            if not self._is_silent(broker, ""):
                try:
                    self._fetch(broker, folder)
                    self._has_answered = True
                except ToolError as error:
                    self._leave(broker)
                    failed.append((broker, error))
        if len(failed) == len(self.brokers) and not self._has_answered:
            raise failed[0][1]
        for broker, why in failed:
            self._leave_out(broker, "", str(why))

    def _fetch(self, broker: Address, folder: Path) -> None:
        with locked(folder) as manifest:
            skip = {b for b in self.silent(broker) if b}
            report = collect.over_network(
                self._ring(broker), self.only, Store(manifest), f"mqtt://{broker[0]}:{broker[1]}",
                lambda _percent: None, skip=skip, open_ones=False,
            )  # fmt: skip
        for board in report.silent:
            about = next((text for text in report.missing if board in text), "no answer")
            self._leave_out(broker, board, about)
        for where, board in [*self._left]:
            if where == broker and board not in skip | report.silent:
                del self._left[where, board]
                say(f"{f'board {board}' if board else '{}:{}'.format(*broker)} is back")
        for text in (*report.gone, *report.bad):
            say(text)

    def _ring(self, broker: Address) -> network.Ring:
        if (ring := self._rings.get(broker)) and not ring.is_lost():
            return ring
        self._leave(broker)
        self._rings[broker] = network.Ring(broker, self.login)
        return self._rings[broker]

    def _leave(self, broker: Address) -> None:
        if ring := self._rings.pop(broker, None):
            ring.close()

    def close(self) -> None:
        """Disconnect from all brokers."""
        for broker in list(self._rings):
            self._leave(broker)

    def silent(self, broker: Address) -> set[str]:
        """Boards that are left out now."""
        return {board for where, board in self._left if self._is_silent(where, board)
                and where == broker}  # fmt: skip

    def _is_silent(self, broker: Address, board: str) -> bool:
        return self._left.get((broker, board), (0.0,))[0] > time.monotonic()

    def _leave_out(self, broker: Address, board: str, why: str) -> None:
        _, before = self._left.get((broker, board), (0.0, FIRST_S / 2))
        wait = min(2 * before, SILENT_S)
        self._left[broker, board] = time.monotonic() + wait, wait
        say(f"{why}; next attempt in {wait:g} s")


def say(text: str, *, err: bool = True) -> None:
    """A line with the time of day."""
    click.echo(f"{time.strftime('%H:%M:%S')} {shown(text)}", err=err)


def run(
    field: Field, harvest: Path, lake: Lake, engine: Engine, every: float | None,
    seconds: float | None = None,
) -> None:  # fmt: skip
    """Until Ctrl-C, or after so many seconds; once, if `every` is None. ToolError if no broker
    answers at the start; then nothing is left behind."""
    deadline = None if seconds is None else time.monotonic() + seconds
    build.check(lake)
    with closing(field), suppress(KeyboardInterrupt):
        begun = time.monotonic()
        field.fetch(harvest)
        with lake.made().locked("live"):
            while True:
                if told := step(engine, harvest, lake):
                    say(told, err=False)
                now = time.monotonic()
                if every is None or (deadline is not None and now >= deadline):
                    return
                left = every - (now - begun) if deadline is None else min(every, deadline - now)
                time.sleep(max(0.0, left))
                begun = time.monotonic()
                field.fetch(harvest)


def step(engine: Engine, harvest: Path, lake: Lake) -> str:
    """Make tables of what is new; -> a line about it, empty if nothing is."""
    taken = bronze.ingest(engine, harvest, lake)
    if lake.open(BRONZE) is None:
        return ""
    silver, gold = build.build_silver(engine, lake), build.build_gold(engine, lake)
    new = taken.last - taken.first
    failed = (*silver.failed, *gold.failed)
    if not (new or silver.boards or gold.boards or failed):
        return ""
    unread = "".join(f"; not read yet: {text}" for text in taken.unread[:1])
    unread += "".join(f"; no tables of {text}" for text in failed[:1])
    boards = count(silver.boards, "board")
    return f"{count(new, 'new bundle')}, {boards} with something new{unread}"
