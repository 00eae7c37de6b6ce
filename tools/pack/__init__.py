"""Makes the broker small for a board: few files, short names, the same program.

A name costs a board some 25 bytes of heap, a module some 100 beside a table of all
names in it, and a name that is imported 8 bytes in each importer. So what is always
loaded together becomes one file, and names that nobody outside of the package can
know become short ones. `program` reads the modules and finds out what each name
means, `names` decides what every thing is called, `rewrite` writes the files.
"""

from .program import Program
from .rewrite import write

__all__ = ["packed"]


def packed(texts: dict[str, str]) -> dict[str, str]:
    """The files of the package as they go to a board, by import name: "slotmq/core.py".

    `texts` are the modules' sources, by import name too. ValueError for what cannot
    be told without running it."""
    return write(Program(texts))
