"""How much free heap a start needs, by the limits and settings of the configuration.

The tables are counted as the start itself counts them. All else was measured once, for a broker
with MQTT 5.0 and without persistence; tests check the figures. How much more a journal takes,
and how much less MQTT 3.1.1 alone, was measured for each board and is in its board.json
(dev/heap/tables_bytes.py).
"""

from collections.abc import Collection
from typing import Any

from slotmq.config import lower_limits

from .. import boards
from ..config import check as check_conf
from ..errors import ToolError
from ..pack import mpy, native
from . import frozen
from .configuration import Configuration

# Bytecode (56 KB), the firmware's modules with Wi-Fi and a clock (16 KB), what starts it, and what
# must stay free for clients
BESIDE_TABLES = 94_290
BESIDE_TABLES_FROZEN = 50 * 1024  # the same where all code is in the firmware
_LOADING = 102_500  # at least: MQTT 5.0 is loaded before the settings say whether it is wanted
_CLOCK = 2800  # the part of BESIDE_TABLES for a clock (--time)
_RECORDER = 11_600
_USERS = 4_400  # code for a password_file, SCRAM included
_RULES = 3_800  # code for an acl_file
_WEB = 5_500  # code for WebSocket, and what each connection takes more
_WEB_EACH = 880
_RULES_FREE = (
    2560  # of the file, while it is read; more takes heap beyond what is free for clients
)
_RESTORE = 8192  # the part of a journal's need that is free again after the restore
_JOURNAL_CODE, _RECORDER_CODE = "slotmq.journal_viper", "slotmq.record_viper"


def needed(
    board: boards.Board,
    conf: Configuration,
    in_firmware: Collection[str] = (),
    clock: bool = False,
) -> tuple[int, list[tuple[Any, ...]]]:
    """Bytes that must be free before anything is loaded, and the rows of the tables therein.

    `in_firmware`: frozen packages. `clock`: network.json has a time source."""
    rows = tables(conf)
    need = sum(row[1] for row in rows)
    if records := bool(getattr(conf.settings, "record", ())):
        need += _RECORDER - (_RESTORE if conf.settings.persistence else 0)
    if conf.settings.password_file:
        need += _USERS
    if _is_web(conf):
        need += _WEB + _WEB_EACH * conf.limits.connections
    if conf.settings.acl_file:
        need += max(_RULES, len(conf.rules) - _RULES_FREE)
    if frozen.is_complete(in_firmware):
        kept = "kept" if conf.settings.persistence else ""
        return need + BESIDE_TABLES_FROZEN + _difference(board, kept), rows
    need = max(need + BESIDE_TABLES + _difference(board, way(conf)), _LOADING)
    web = native.in_folder(mpy.build(board.mpy_arch))[native.WEB] if _is_web(conf) else 0
    web = web if board.mcu.startswith("rp2") else 0
    return need + web + native_code(board, records) - (0 if clock else _CLOCK), rows


def _is_web(conf: Configuration) -> bool:
    return any(each[3].get("protocol") == "websockets" for each in conf.settings.listeners)


def tables(conf: Configuration) -> list[tuple[Any, ...]]:
    """Rows (name, bytes, ...) of the budget that the start prints."""
    return check_conf.tables(conf.settings, conf.limits)


def way(conf: Configuration) -> str:
    """How the broker is started, as a key of `tables_bytes` in board.json."""
    return check_conf.way(conf.settings)


def native_code(board: boards.Board, records: bool = False) -> int:
    """Bytes of native code in the heap, without a journal's, which board.json counts.

    0: the board does not keep native code in the heap."""
    if not board.mcu.startswith("rp2"):
        return 0
    sizes = native.in_folder(mpy.build(board.mpy_arch))
    optional = [
        name for name in sizes if name.startswith((_JOURNAL_CODE, _RECORDER_CODE, native.WEB))
    ]
    always = sum(size for name, size in sizes.items() if name not in optional)
    return always + (sizes[_RECORDER_CODE] if records else 0)


def _difference(board: boards.Board, way: str) -> int:
    # How much more is needed than BESIDE_TABLES
    return board.tables_bytes[""] - board.tables_bytes[way]


def check(
    board: boards.Board, conf: Configuration, free: int, in_firmware: Collection[str], clock: bool
) -> None:
    """ToolError: more heap is needed than is free; the message names the largest table."""
    need, rows = needed(board, conf, in_firmware, clock)
    if need <= free:
        return
    own = check_conf.preset(board.name)
    lower = lower_limits.report(rows, need - free, conf.limits, own, conf.settings)
    raise ToolError(
        f"{free:,} bytes of heap are free, and {need:,} are needed:"
        f" {sum(row[1] for row in rows):,} of them for tables; {lower}"
    )
