"""Shows on standard error how far a fetch is: a bar on a terminal, elsewhere one line.

The one module that uses click before it must be there: tools/bootstrap.py fetches
while nothing is installed yet.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bar(label: str) -> Iterator[Callable[[float], None]]:
    """What is given takes the percentage that has been reached."""
    try:
        import click
    except ImportError:
        print(label, file=sys.stderr, flush=True)
        yield lambda percent: None
        return
    with click.progressbar(length=100, label=label, file=sys.stderr) as shown:
        yield lambda percent: shown.update(max(0, int(percent) - shown.pos))
        shown.update(100 - shown.pos)
