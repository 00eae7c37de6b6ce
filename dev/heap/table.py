"""The measurements as text for the terminal, and as a table in docs/board.md."""

from collections.abc import Callable, Iterator

from .. import figures
from .measure import Measured

_ROWS: tuple[tuple[str, Callable[[Measured], int]], ...] = (
    ("heap of the board", lambda found: found.heap),
    ("code from `.mpy` files", lambda found: found.bytecode),
    ("native code (on an ESP32 outside of that heap)", lambda found: found.all_native),
    ("tables", lambda found: found.all_tables),
    ("each connected client, its slots in the tables included", lambda f: f.whole_client),
    ("each session without a connection, its slot included", lambda f: f.whole_session),
    ("free while 4 clients are connected", lambda found: found.free),
)


def text(found: Measured) -> Iterator[str]:
    """All measurements as lines."""
    yield f"{found.board}, bytes of a heap of {found.heap:,}\n"
    yield _line("module as it is written", "heap", "native")
    for name, size in found.modules.items():
        yield _line(name, size, found.native_modules.get(name, ""))
    yield "\n" + _line("packed file", "heap", "native")
    for name, size in found.files.items():
        yield _line(name, size, found.native.get(name, ""))
    for name, size in found.left.items():
        yield _line(f"{name} ({found.borrowed[name]:,} while borrowed)", size)
    yield _line("code", found.bytecode, found.all_native) + "\n"
    yield _line("table", "claimed", "measured")
    for name, claimed, measured in found.table_rows():
        yield _line(name, claimed, measured)
    yield _line("tables", found.claim, found.all_tables) + "\n"
    for name, value in _ROWS:
        yield f"{name:56}{value(found):12,}"


def _line(name: str, *cells: str | int) -> str:
    texts = [f"{cell:,}" if isinstance(cell, int) else cell for cell in cells]
    return f"{name:44}" + "".join(f"{text:>12}" for text in texts).rstrip()


def markdown(each: list[Measured]) -> str:
    """The table in docs/board.md: a column for each board."""
    rows = [[name, *(f"{value(found):,}" for found in each)] for name, value in _ROWS]
    return figures.table(["Bytes of heap", *(f"`{found.board}`" for found in each)], rows)


def numbers(table: str) -> dict[tuple[str, str], int]:
    """A table's values by row and board."""
    lines = [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in table.splitlines()]
    boards = lines[0][1:]
    return {
        (line[0], board): int(cell.replace(",", ""))
        for line in lines[2:]
        for board, cell in zip(boards, line[1:], strict=True)
    }
