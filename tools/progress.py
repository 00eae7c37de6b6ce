"""A progress bar on standard error; without a terminal, or without click, one line.

tools/dev/bootstrap.py fetches before click is installed.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bar(label: str) -> Iterator[Callable[[float], None]]:
    """Show a bar; call what the block is given with the percentage (0 to 100) reached."""
    try:
        import click
    except ImportError:
        print(label, file=sys.stderr, flush=True)
        yield lambda percent: None
        return
    with click.progressbar(length=100, label=label, file=sys.stderr) as shown:
        yield lambda percent: shown.update(max(0, int(percent) - shown.pos))
        shown.update(100 - shown.pos)
