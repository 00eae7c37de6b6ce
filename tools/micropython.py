"""Finds MicroPython's unix port, and says how to start it.

In this order: the program named by $SLOTMQ_MICROPYTHON (32-bit) or $SLOTMQ_MICROPYTHON64, a
`micropython` on the PATH if it fits, Debian's, which is fetched into the cache. Boards have words
of 32 bits; only with these are the sizes of objects, and what allocates, the same as there.
"""

import functools
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .errors import ToolError
from .fetch import debian

OLDEST = (1, 25)

_VARIABLES = {32: "SLOTMQ_MICROPYTHON", 64: "SLOTMQ_MICROPYTHON64"}

# Prints the word size, the version, and the kind of .mpy files that it loads.
_PROBE = """\
import sys
v = sys.implementation.version
print(64 if sys.maxsize >> 32 else 32, v[0], v[1], v[2], sys.implementation._mpy)
"""

# The architectures of native code in .mpy files, by their number in the header.
_MPY_ARCHITECTURES = (
    "",
    "x86",
    "x64",
    "armv6",
    "armv6m",
    "armv7m",
    "armv7em",
    "armv7emsp",
    "armv7emdp",
    "xtensa",
    "xtensawin",
    "rv32imc",
)


@dataclass(frozen=True)
class MicroPython:
    """A MicroPython that runs here; `start` is its command line without arguments."""

    start: tuple[str, ...]
    bits: int
    version: tuple[int, int, int]
    mpy: int  # bytes 1 and 2 of the native .mpy files it loads, as one integer

    @property
    def arch(self) -> str:
        """The architecture of its native code, as mpy-cross names it; "": it runs none."""
        number = self.mpy >> 10
        return _MPY_ARCHITECTURES[number] if number < len(_MPY_ARCHITECTURES) else ""

    def __str__(self) -> str:
        return f"MicroPython {'.'.join(map(str, self.version))} ({self.bits}-bit)"


@functools.cache
def find(bits: int = 32) -> MicroPython:
    """The MicroPython of that word size (32 or 64), fetched if there is none.

    ToolError: it cannot be fetched or does not fit."""
    if named := os.environ.get(_VARIABLES[bits]):
        return _named(named, bits)
    if on_path := shutil.which("micropython"):
        candidate = probe((on_path,))
        if candidate and _fits(candidate, bits):
            return candidate
    unpacked = debian.unpack(["micropython"], debian.architecture(bits))
    fetched = probe(tuple(unpacked.command("usr/bin/micropython")))
    if fetched is None or not _fits(fetched, bits):
        raise ToolError(f"Debian's {bits}-bit MicroPython does not start on this machine")
    return fetched


def command(
    bits: int, heap_kb: int, script: str | Path, args: Sequence[str | Path] = ()
) -> list[str]:
    """The command line that runs a script with a heap of that size."""
    heap = ("-X", f"heapsize={heap_kb}k")
    return [*find(bits).start, *heap, str(script), *map(str, args)]


def environment(*import_folders: Path) -> dict[str, str]:
    """The environment to start it in: import path, and a heap at low addresses.

    On a board an object's address is a small integer. Here glibc would mmap a heap of 128 KB or
    more near the top of the address space, where `id(obj)` and `poll.modify` allocate 32 bytes for
    a large integer. Without mmap it takes the heap from the break, below 2 GB.
    """
    path = ":".join([*map(str, import_folders), ".frozen"])
    return {**os.environ, "MICROPYPATH": path, "MALLOC_MMAP_MAX_": "0"}


def probe(start: tuple[str, ...]) -> MicroPython | None:
    """The MicroPython that this command line starts; None: it is none, or does not run here."""
    try:
        answer = subprocess.run(
            [*start, "-c", _PROBE], capture_output=True, text=True, check=True, timeout=30
        ).stdout
        bits, major, minor, patch, mpy = map(int, answer.split())
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return MicroPython(start, bits, (major, minor, patch), mpy)


def _named(program: str, bits: int) -> MicroPython:
    found = probe((program,))
    if found is None:
        raise ToolError(f"${_VARIABLES[bits]} does not start as MicroPython: {program}")
    if not _fits(found, bits):
        oldest = ".".join(map(str, OLDEST))
        raise ToolError(
            f"${_VARIABLES[bits]} must be a {bits}-bit MicroPython {oldest} or later,"
            f" not {found}: {program}"
        )
    return found


def _fits(found: MicroPython, bits: int) -> bool:
    return found.bits == bits and found.version[:2] >= OLDEST
