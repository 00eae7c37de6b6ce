"""Packs the broker for a board: few files, short names, the same program.

On a board a name takes some 25 bytes of heap, a module some 100 and a table of all its names,
and an imported name 8 bytes in each importer. So modules that are always loaded together become
one file, and names that are not used outside of the package become short.

    program.py    reads the modules; finds what each top-level name refers to
    names.py      chooses the new names
    rewrite.py    writes the packed files
    numbers.py    finds constants; puts them into sources that are not packed
    mpy.py        compiles them, into the cache
    native.py     the heap that their native code takes on a board
    mip.py        `slotmq build --mip`
"""

import re

from .program import Program
from .rewrite import write

__all__ = ["by_address", "packed"]

_COLUMN = re.compile(r"int\((\w+)\) - (\1\[)")
_DISTANCE = re.compile(r"(return) int\(\w+\) -( int\(\w+\)\n)")


def packed(texts: dict[str, str]) -> dict[str, str]:
    """The packed files of the package, by import name ("slotmq/core.py").

    `texts`: the modules' sources, by import name too. ValueError: the meaning of a name or of a
    branch is only known at run time. SyntaxError: a source cannot be parsed."""
    return write(Program(texts))


def by_address(source: str) -> str:
    """Native code whose tables have addresses of columns in place of distances (table() of
    fast/bytes_viper.py), as 32 bits suffice for: a twelfth less code."""
    return _DISTANCE.sub(r"\1\2", _COLUMN.sub(r"\2", source))
