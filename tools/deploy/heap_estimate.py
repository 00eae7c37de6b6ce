"""How much of a board's heap a start needs: by its limits, and by what else it is asked for.

The tables are counted as the start itself counts them. What is beside them was measured once
(tests hold it), for a broker of MQTT 5.0 that keeps nothing; how much a journal takes more,
and MQTT 3.1.1 alone less, is in board.json, as measured for that board (heap/room.py).
"""

from collections.abc import Collection
from typing import Any

from slotmq.app import start
from slotmq.config import budget

from .. import boards
from ..errors import ToolError
from ..pack import mpy, native
from . import frozen
from .configuration import Configuration

# Bytecode (56 KB), the firmware's modules with Wi-Fi and a clock (16), what starts it and what
# must stay free for clients.
BESIDE_TABLES = 92_700
BESIDE_TABLES_FROZEN = 50 * 1024  # the same where all code is in the firmware
_CODE = 98_400  # to load it: MQTT 5.0's part is there before it is known that nobody wants it
_CLOCK = 2800  # of it, for who has one
_RECORDER = 11_600
_TO_READ_BACK = 8192  # of what a journal takes more: free when it has been read
_JOURNAL, _RECORDS = "slotmq.journal_viper", "slotmq.record_viper"


def needed(
    board: boards.Board,
    conf: Configuration,
    in_firmware: Collection[str] = (),
    clock: bool = False,
) -> tuple[int, list[tuple[Any, ...]]]:
    """Bytes that must be free before anything is loaded, and the tables that are among them."""
    rows = tables(conf)
    need = sum(row[1] for row in rows)
    if records := bool(getattr(conf.settings, "record", ())):
        need += _RECORDER - (_TO_READ_BACK if conf.settings.persistence else 0)
    if frozen.all_in(in_firmware):
        kept = "kept" if conf.settings.persistence else ""
        return need + BESIDE_TABLES_FROZEN + _more(board, kept), rows
    need = max(need + BESIDE_TABLES + _more(board, way(conf)), _CODE)
    return need + native_code(board, records) - (0 if clock else _CLOCK), rows


def tables(conf: Configuration) -> list[tuple[Any, ...]]:
    """Rows of the budget, as the start has them."""
    rows: list[tuple[Any, ...]] = conf.limits.rows()
    if conf.settings.mqtt_versions == 3:
        rows = [row for row in rows if row[0] not in start._OF_VERSION_5]
    if conf.settings.persistence:
        rows.append(budget.journal(conf.limits))
    return rows


def way(conf: Configuration) -> str:
    """How the broker is started, as a key of board.json's `tables_bytes`."""
    ways = ("3", conf.settings.mqtt_versions == 3), ("kept", conf.settings.persistence)
    return " ".join(name for name, is_so in ways if is_so)


def native_code(board: boards.Board, records: bool = False) -> int:
    """Bytes of native code in the heap, but for a journal's, which is in board.json; none where
    a board keeps it elsewhere."""
    if not board.mcu.startswith("rp2"):
        return 0
    sizes = native.in_folder(mpy.build(board.mpy_arch))
    asked_for = [name for name in sizes if name.startswith((_JOURNAL, _RECORDS))]
    always = sum(size for name, size in sizes.items() if name not in asked_for)
    return always + (sizes[_RECORDS] if records else 0)


def _more(board: boards.Board, started: str) -> int:
    # Than what BESIDE_TABLES has
    return board.tables_bytes[""] - board.tables_bytes[started]


def check(
    board: boards.Board, conf: Configuration, free: int, in_firmware: Collection[str], clock: bool
) -> None:
    """ToolError: it does not fit, and which limit to lower."""
    need, rows = needed(board, conf, in_firmware, clock)
    if need <= free:
        return
    largest = max(rows, key=lambda row: row[1])
    raise ToolError(
        f"{free:,} bytes of heap are free, and {need:,} are needed:"
        f" {sum(row[1] for row in rows):,} of them for tables. Lower a limit in the configuration:"
        f" {largest[0]} take {largest[1]:,}"
    )
