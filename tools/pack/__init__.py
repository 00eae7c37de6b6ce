"""Packs the broker for a board: few files, short names, the same program.

On a board a name takes some 25 bytes of heap, a module some 100 and a table of all its names,
and an imported name 8 bytes in each importer. So modules that are always loaded together become
one file, and names that are not used outside of the package become short.

    program.py    reads the modules; finds what each top-level name refers to
    names.py      chooses the new names
    rewrite.py    writes the packed files
    mpy.py        compiles them, into the cache
    native.py     the heap that their native code takes on a board
    mip.py        `slotmq build --mip`
"""

from .program import Program
from .rewrite import write

__all__ = ["packed"]


def packed(texts: dict[str, str]) -> dict[str, str]:
    """The packed files of the package, by import name ("slotmq/core.py").

    `texts`: the modules' sources, by import name too. ValueError: the meaning of a name or of a
    branch is only known at run time. SyntaxError: a source cannot be parsed."""
    return write(Program(texts))
