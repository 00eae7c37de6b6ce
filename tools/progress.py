"""A progress bar on standard error, where that is a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click


@contextmanager
def bar(label: str) -> Iterator[Callable[[float], None]]:
    """Call what the block is given with the percentage (0 to 100) reached; 100 is shown at the
    end of the block."""
    if not sys.stderr.isatty():
        yield lambda percent: None
        return
    with click.progressbar(length=100, label=label, file=sys.stderr) as shown:
        yield lambda percent: shown.update(max(0, min(99, int(percent)) - shown.pos))
        shown.update(100 - shown.pos)
