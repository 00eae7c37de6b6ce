"""Counts the cycles and instructions that the broker needs for each kind of packet on an RP2040.

    python -m slotmq_dev.emulator.cycles [--frozen | --write docs/measurements.md]

cycles_micropython.py runs on the emulated board in batch mode, where all runs take the same
number of cycles. Not counted are MicroPython's sockets and lwIP, what platform/lwip.py reads from
lwIP before each write (some 10,000 cycles), and waiting for flash, which the emulator does not
model: a board needs up to a third more when its cache has to be filled.

Renaming alone changes the count: MicroPython looks up names in hash maps, and which names collide
is chance. So lookups, and the cycles in them, are counted separately from the rest.
"""

import hashlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slotmq_tools import boards, cache
from slotmq_tools.deploy.repl import Repl
from slotmq_tools.errors import ToolError
from slotmq_tools.pack import mpy

from .. import figures
from . import frozen
from .board import Board, run_script

BOARD = "RPI_PICO_W"
MHZ = 125
_GUEST = Path(__file__).with_name("cycles_micropython.py")
_LOOKUP = "mp_map_lookup"
_ENTER, _LEAVE, _BEGIN, _END = 1, 2, 100, 200


@dataclass(frozen=True)
class Cost:
    """What the broker needs for one kind of packet."""

    name: str
    cycles: int
    instructions: int
    lookups: int  # of names in hash maps
    in_lookups: int  # those of the cycles that lookups take

    @property
    def steady(self) -> int:
        """The cycles outside of lookups."""
        return self.cycles - self.in_lookups


def measure(texts: dict[str, bytes] | None = None) -> list[Cost]:
    """The cost of each kind of packet, in the order sent; the least of several rounds.

    `texts`: sources that replace the broker's (see pack/mpy.py). ToolError: it failed."""
    return _least(run_script(_GUEST, flash(texts) / "flash.bin", save=False, counted=_LOOKUP))


def _least(found: dict[str, Any]) -> list[Cost]:
    if found["errors"]:
        raise ToolError(f"the board: {found['errors'].strip().splitlines()[-1]}")
    names = found["output"].split("\r\n")
    least: dict[str, Cost] = {}
    for cost in _costs(names, found["marks"]):  # interrupts add to some rounds
        if cost.name not in least or cost.cycles < least[cost.name].cycles:
            least[cost.name] = cost
    return list(least.values())


def measure_frozen() -> list[Cost]:
    """The same with the broker frozen into the image. Lookups are not told from the rest there,
    since only the stock image has a table of its functions. ToolError: it failed."""
    files = flash() / "flash.bin"  # only its limits are used: what is frozen goes before /lib
    return _least(run_script(_GUEST, files, firmware=frozen.build(), save=False))


def _costs(names: list[str], marks: list[list[int]]) -> Iterator[Cost]:
    begun = entered = outside = [0] * 4  # outside: in the stand-ins for sockets
    for tag, *now in marks:
        if tag == _ENTER:
            entered = now
        elif tag == _LEAVE:
            outside = [outside[i] + now[i] - entered[i] for i in range(4)]
        elif tag >= _END:
            cycles, instructions, *lookups = (now[i] - begun[i] - outside[i] for i in range(4))
            yield Cost(names[tag - _END], cycles, instructions, *lookups)
        elif tag >= _BEGIN:
            begun, outside = now, [0] * 4


def flash(texts: dict[str, bytes] | None = None) -> Path:
    """A folder with flash.bin that holds the broker, made of `texts` or the broker's sources."""
    made = mpy.build(boards.load(BOARD).mpy_arch, texts=texts)
    files = {f"/lib/{name}": (made / name).read_bytes() for name in mpy.for_board(made, BOARD)}
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(f"{name} {len(content)}\n".encode() + content)

    def fill(folder: Path) -> None:
        with Board(folder) as board, Repl(board.device) as repl:
            for name, content in files.items():
                repl.write(name, content)

    return cache.folder(f"rp2040-flash/{digest.hexdigest()[:16]}", fill)


def table(costs: list[Cost]) -> str:
    """The costs as a table for docs/measurements.md."""
    columns = ["packet", "cycles", f"at {MHZ} MHz", "instructions", "lookups"]
    rows = (
        [
            cost.name,
            f"{cost.cycles:,}",
            f"{cost.cycles / MHZ / 1000:.2f} ms",
            *(f"{number:,}" for number in (cost.instructions, cost.lookups, cost.steady)),
        ]
        for cost in costs
    )
    return figures.table([*columns, "cycles without them"], rows)


def read(file: Path) -> dict[str, Cost]:
    """The costs in the file's table, by name."""
    lines = figures.get(file.read_text(), "cycles").splitlines()[2:]
    return {cost.name: cost for cost in map(_row, lines)}


def _row(line: str) -> Cost:
    name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
    cycles, instructions, lookups, steady = (
        int(cell.replace(",", "")) for cell in cells if not cell.endswith("ms")
    )
    return Cost(name, cycles, instructions, lookups, cycles - steady)


def main() -> int:
    """Print the table, or write it."""
    try:
        costs = measure_frozen() if sys.argv[1:] == ["--frozen"] else measure()
        if sys.argv[1:2] == ["--write"]:
            figures.write(Path(sys.argv[2]), cycles=table(costs))
    except ToolError as error:
        print(f"slotmq: {error}", file=sys.stderr)
        return 1
    print(table(costs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
