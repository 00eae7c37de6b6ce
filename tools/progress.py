"""A progress bar on standard error, where that is a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import util


@contextmanager
def bar(label: str) -> Iterator[Callable[[float], None]]:
    """Call what the block is given with the percentage (0 to 100) reached; 100 is shown at the
    end of the block. Before click is installed (dev/bootstrap.py) only the label is shown."""
    if not sys.stderr.isatty():
        yield lambda percent: None
    elif util.find_spec("click") is None:
        print(f"{label} ...", file=sys.stderr, flush=True)
        yield lambda percent: None
    else:
        import click

        with click.progressbar(length=100, label=label, file=sys.stderr) as shown:
            yield lambda percent: shown.update(max(0, min(99, int(percent)) - shown.pos))
            shown.update(100 - shown.pos)
