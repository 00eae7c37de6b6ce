"""What takes how much of a board's heap: measured, and as Limits claims.

The program is measured as a board gets it, packed; what each of its modules takes,
and each table, is measured in a second run, of the program as it was written. What a
module takes there is more than its share of the packed one.

The unix port maps native code outside of MicroPython's heap. It is counted from
the .mpy files for the board's processor, and where a board keeps it in the heap,
the heap of the measurement is smaller by so much.
"""

import time
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from ... import boards, micropython
from ...pack import mpy, native
from .process import MEASURE, SERVE, SERVE_FLASH, Process

_CLIENTS = 4
# The tables as they are made, and the rows of Limits that tell of each.
_CLAIMS = {
    "Connections": ("connections", "reassembly"),
    "Sessions": ("sessions",),
    "Subscriptions": ("subscriptions", "nodes", "routes"),
    "Retained": ("retained",),
    "Messages": ("messages",),
    "Deliveries": ("deliveries",),
}
_WHOLE, _WHOLE_3 = "Broker", "Broker-3"
_PUT_AWAY_S = 1.5  # until what was loaded on demand has been forgotten
_ROOM_FOR_DEVICE = 16 * 1024  # of more heap, where what only the measuring needs may lie
# As a board that keeps what it promises, in a file where it runs.
_KEEPING = "persistence true\nallow_anonymous true\n"
_KEEPING_NATIVE = "slotmq.journal_viper"
_RECORDING = "record #\nremote_admin true\n"
_RECORDING_NATIVE = "slotmq.record_viper"
_ROOM = 128 * 1024  # for the program as it was written
# What Cortex-M boards load from .mpy lies in the heap; an ESP32 has other memory for it.
_NATIVE_IN_HEAP = "armv"


@dataclass
class Measured:
    """Bytes of heap, by what takes them."""

    board: str
    heap: int
    claimed: dict[str, int]  # the rows of Limits
    files: dict[str, int] = field(default_factory=dict)  # of the packed program
    native: dict[str, int] = field(default_factory=dict)
    modules: dict[str, int] = field(default_factory=dict)  # as they were written
    native_modules: dict[str, int] = field(default_factory=dict)
    borrowed: dict[str, int] = field(default_factory=dict)  # while a start or reload lasts
    left: dict[str, int] = field(default_factory=dict)  # behind these
    tables: dict[str, int] = field(default_factory=dict)
    offline: int = 0  # a session without a connection, beside its slot
    client: int = 0  # a connected client, beside its slots
    free: int = 0  # with the clients connected

    @property
    def bytecode(self) -> int:
        """All that loading the program has added to the heap."""
        return sum(self.files.values()) + sum(self.left.values())

    @property
    def all_native(self) -> int:
        """Bytes of native code, of all files that are always loaded."""
        return sum(size for name, size in self.native.items() if name in self.files)

    @property
    def code(self) -> int:
        """What the program takes, in whatever memory."""
        return self.bytecode + self.all_native

    @property
    def all_tables(self) -> int:
        return self.tables[_WHOLE]

    @property
    def tables_of_version_3(self) -> int:
        """With `mqtt_versions 3`."""
        return self.tables[_WHOLE_3]

    @property
    def claim(self) -> int:
        """Limits.ram_bytes()."""
        return sum(self.claimed.values())

    def table_rows(self) -> list[tuple[str, int, int]]:
        """For each table: which rows of Limits, what they claim, what was measured."""
        rows = [
            (" + ".join(names), sum(self.claimed[name] for name in names), self.tables[table])
            for table, names in _CLAIMS.items()
        ]
        others = [name for name in self.claimed if not any(name in n for n in _CLAIMS.values())]
        rest = self.all_tables - sum(measured for _, _, measured in rows)
        rows.append((" + ".join(others), sum(self.claimed[name] for name in others), rest))
        return rows

    @property
    def whole_client(self) -> int:
        """A connected client with its slots in the tables of connections and sessions."""
        return self.client + self._slot("connections") + self.whole_session

    @property
    def whole_session(self) -> int:
        """A session without a connection, its slot included."""
        return self.offline + self._slot("sessions")

    def _slot(self, table: str) -> int:
        """What one slot more of a table costs."""
        limits = limits_of(self.board)
        more = limits.replaced({"sessions": limits.sessions + 1})
        if table != "sessions":
            more = more.replaced({table: getattr(limits, table) + 1})
        rows = [{name: size for name, size, _ in each.rows()} for each in (limits, more)]
        slot: int = rows[1][table] - rows[0][table]
        return slot


def limits_of(board: str) -> Any:
    """The board's preset."""
    return import_module(f"slotmq_boards.{board}.limits").LIMITS


def measure(board: str, heap: int = 0) -> Measured:
    """Measure the broker with the limits of a board, and its heap if no other is named."""
    facts = boards.load(board)
    claimed = {name: size for name, size, _ in limits_of(board).rows()}
    found = Measured(board, heap or facts.heap_kb * 1024, claimed)
    arch = facts.mpy_arch or micropython.find(32).arch
    found.native = native.in_folder(mpy.build(arch))
    found.native_modules = native.in_folder(mpy.build(arch, packed=False))
    with Process(MEASURE, board, found.heap and found.heap + _ROOM, packed=False) as process:
        found.modules = _note(found, process.rows())
    found.borrowed.clear()  # these have other names in the packed program, which is what counts
    found.left.clear()
    with Process(MEASURE, board, found.heap and found.heap + _ROOM) as process:
        found.files = _note(found, process.rows())
    taken = found.all_native if facts.mpy_arch.startswith(_NATIVE_IN_HEAP) else 0
    found.offline, found.client, found.free = _serve(board, found.heap - taken)
    return found


def free_keeping(board: str) -> int:
    """What is free with `persistence true`, the journal in a file, and the clients connected."""
    return _free(board, SERVE, _KEEPING)


def free_in_flash(board: str) -> int:
    """The same with the journal in raw flash: so much less as it is beside the same device."""
    in_file, in_flash = (
        _free(board, SERVE_FLASH, _KEEPING + more) for more in ("persistence_location ./\n", "")
    )
    return free_keeping(board) - (in_file - in_flash)


def _free(board: str, script: Path, conf: str) -> int:
    facts = boards.load(board)
    heap = facts.heap_kb * 1024
    if facts.mpy_arch.startswith(_NATIVE_IN_HEAP):
        code = native.in_folder(mpy.build(facts.mpy_arch))
        heap -= code["slotmq.viper"] + code[_KEEPING_NATIVE]
    if script == SERVE_FLASH:
        heap += _ROOM_FOR_DEVICE
    return _serve(board, heap, conf, script)[2]


def free_recording(board: str) -> int:
    """What is free with the journal and the recorder, and the clients connected."""
    facts = boards.load(board)
    heap = facts.heap_kb * 1024
    if facts.mpy_arch.startswith(_NATIVE_IN_HEAP):
        code = native.in_folder(mpy.build(facts.mpy_arch))
        heap -= sum(code[name] for name in ("slotmq.viper", _KEEPING_NATIVE, _RECORDING_NATIVE))
    return _serve(board, heap, _KEEPING + _RECORDING)[2]


def _serve(board: str, heap: int, conf: str = "", script: Path = SERVE) -> tuple[int, int, int]:
    # What a session without a connection takes, and a client; what is left with all of them.
    with Process(script, board, heap, conf=conf) as process:
        process.rows()
        process.connect().close()  # some names of what it needs stay
        time.sleep(_PUT_AWAY_S)
        alone = _state(process, "used")
        process.leave_session()
        time.sleep(_PUT_AWAY_S)
        offline = _state(process, "used") - alone
        for _ in range(_CLIENTS):
            process.connect()
        time.sleep(_PUT_AWAY_S)
        used, free = _state(process, "used"), _state(process, "free")
    return offline, -(-(used - alone - offline) // _CLIENTS), free


def _state(process: Process, name: str) -> int:
    return {name: size for _, name, size in process.ask()}[name]


def _note(found: Measured, answer: list[tuple[str, str, int]]) -> dict[str, int]:
    # -> what was loaded to stay
    kinds = {"borrowed": found.borrowed, "left": found.left, "table": found.tables}
    for kind, name, size in answer:
        if kind in kinds:
            kinds[kind][name] = size
    return {n: size for kind, n, size in answer if kind == "module" and n not in found.borrowed}
