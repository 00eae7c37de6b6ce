"""What `ingest` and `build` say of a step: how far it is, and at its end what it has done."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import click

from .engine import Engine

EVERY_S = 10.0  # from one line to the next where no terminal is
_CLEAR = "\r\x1b[K"
# How the rows of a table are called.
_ROWS = {"bronze": "records", "quarantine": "in quarantine", "silver/messages": "messages"}


@dataclass
class Told:
    """How far a step is."""

    name: str
    begun: float = field(default_factory=time.monotonic)
    text: str = ""  # what it has done
    _last: float = field(default_factory=time.monotonic)

    def progress(self, percent: float) -> None:
        line = f"{self.name}: {percent:.0f} %"
        if sys.stderr.isatty():
            click.echo(f"{_CLEAR}{line}", nl=False, err=True)
        elif time.monotonic() - self._last >= EVERY_S and percent < 100:
            self._last = time.monotonic()
            click.echo(line, err=True)


@contextmanager
def step(name: str, engine: Engine) -> Iterator[Told]:
    """A line at its end, unless it fails; `text` is in it."""
    told = Told(name)
    engine.progress = told.progress
    engine.rows.clear()
    try:
        yield told
    finally:
        engine.progress = lambda percent: None
        if sys.stderr.isatty():
            click.echo(_CLEAR, nl=False, err=True)
    took = f" in {time.monotonic() - told.begun:.1f} s"
    click.echo(f"{name}: {told.text}" + (figures + took if (figures := _figures(engine)) else ""))


def _figures(engine: Engine) -> str:
    rows = {table: count for table, count in engine.rows.items() if count}
    named = [f", {rows[table]:,} {word}" for table, word in _ROWS.items() if table in rows]
    return "".join(named or [f", {sum(rows.values()):,} rows"]) if rows else ""
