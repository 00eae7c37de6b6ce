"""`python -m slotmq_dev.wear`: flash wear of a message, and the lifetime of the chip."""

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import click

from slotmq_tools import micropython
from slotmq_tools.errors import ToolError
from slotmq_tools.pack import mpy

from .. import figures

_MEASURE = Path(__file__).with_name("measure_micropython.py")
_HEAP_KB = 4096
_CYCLES = 100_000
_BLOCK = 4096
# A raw region, and the file system of a Pico W
_BLOCKS = {"flash": 64, "littlefs": 212}
_YEAR_S = 365 * 86400
_LINE = re.compile(r"^wear (\w+) (.*) (\d+) (\d+)$")


class Wear(NamedTuple):
    """Bytes that a message programs and erases."""

    medium: str
    traffic: str
    programmed: float
    erased: float

    @property
    def years(self) -> float | None:
        """Lifetime at a message per second and 100,000 erasures of a block; None: no wear."""
        if not self.erased:
            return None
        return _BLOCKS[self.medium] * _BLOCK * _CYCLES / self.erased / _YEAR_S


def measure() -> list[Wear]:
    """Run the script on 32-bit MicroPython."""
    target = micropython.find(32)
    done = subprocess.run(
        micropython.command(32, _HEAP_KB, _MEASURE, ()),
        env=micropython.environment(mpy.build_for(target, packed=False), mpy.tools()),
        capture_output=True,
        text=True,
        check=False,
    )
    found = [match.groups() for match in map(_LINE.match, done.stdout.splitlines()) if match]
    if not done.stdout.endswith("done\n"):
        raise ToolError("MicroPython has ended: " + (done.stdout + done.stderr)[-300:])
    return [Wear(medium, name, int(a) / 100, int(b) / 100) for medium, name, a, b in found]


def markdown(found: list[Wear]) -> str:
    """The table in docs/reliability.md: a row for each kind of traffic."""
    heads = ["a message of 64 bytes"]
    heads += [
        f"{medium}: {what}" for medium in _BLOCKS for what in ("programmed", "erased", "years")
    ]
    rows = []
    for traffic in dict.fromkeys(one.traffic for one in found):
        cells = [
            cell
            for medium in _BLOCKS
            for one in found
            if (one.medium, one.traffic) == (medium, traffic)
            for cell in (f"{one.programmed:,.0f}", f"{one.erased:,.0f}", _years(one.years))
        ]
        rows.append([traffic, *cells])
    return figures.table(heads, rows)


def _years(years: float | None) -> str:
    return "-" if years is None else f"{years:.1f}"


@click.command()
@click.option(
    "--write",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Write the table into this file instead, between its markers.",
)
def main(file: Path | None) -> None:
    """Measure the flash wear by persistence."""
    table = markdown(measure())
    if file:
        figures.write(file, wear=table)
    else:
        click.echo(table)


if __name__ == "__main__":
    main()
