"""Measures the heap that code, tables and clients need, and compares it with Limits.

The code is measured as a board gets it, packed. Modules and tables are measured in a second run
with the modules as they are written; there a module needs more than its part of the packed code.

The unix port maps native code outside of MicroPython's heap. Its size is taken from the .mpy files
for the board's processor. On boards that have it in the heap, the measurement gets a heap that is
smaller by this size.
"""

import tempfile
import time
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from slotmq import Settings
from slotmq.config import budget
from slotmq_tools import boards, micropython, passwd
from slotmq_tools.pack import mpy, native

from .process import MEASURE, SERVE, SERVE_FLASH, Process

_CLIENTS = 4
# The classes of tables, with their rows in Limits
_CLAIMS = {
    "Connections": ("connections", "reassembly"),
    "Sessions": ("sessions",),
    "Subscriptions": ("subscriptions", "nodes", "routes"),
    "Retained": ("retained",),
    "Messages": ("messages",),
    "Deliveries": ("deliveries",),
}
_WHOLE, _WHOLE_3 = "Broker", "Broker-3"
_UNLOAD_S = 1.5  # until modules that were loaded on demand are unloaded
_DEVICE_BYTES = 16 * 1024  # additional heap for what only the measurement needs
# The journal is a file in the current folder.
_PERSISTENCE = "persistence true\nallow_anonymous true\n"
_JOURNAL_NATIVE = "slotmq.journal_viper"
_RECORDING = "record #\nremote_admin true\nlimit message_bytes 8192\n"
_RECORDING_NATIVE = "slotmq.record_viper"
_UNPACKED_BYTES = 128 * 1024  # additional heap for modules as they are written
# Cortex-M boards have native code in the heap; an ESP32 has other memory for it.
_NATIVE_IN_HEAP = "armv"


@dataclass
class Measured:
    """Bytes of heap, by purpose."""

    board: str
    heap: int
    claimed: dict[str, int]  # the rows of Limits
    files: dict[str, int] = field(default_factory=dict)  # of the packed code
    native: dict[str, int] = field(default_factory=dict)
    modules: dict[str, int] = field(default_factory=dict)  # as they are written
    native_modules: dict[str, int] = field(default_factory=dict)
    borrowed: dict[str, int] = field(default_factory=dict)  # loaded only during a start or reload
    left: dict[str, int] = field(default_factory=dict)  # after these are unloaded
    tables: dict[str, int] = field(default_factory=dict)
    offline: int = 0  # a session without a connection, without its slot
    client: int = 0  # a connected client, without its slots
    free: int = 0  # with the clients connected

    @property
    def bytecode(self) -> int:
        """The heap that loading the code needs."""
        return sum(self.files.values()) + sum(self.left.values())

    @property
    def all_native(self) -> int:
        """Bytes of native code in all files that are always loaded."""
        return sum(size for name, size in self.native.items() if name in self.files)

    @property
    def code(self) -> int:
        """The code in all memories."""
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
        """For each table: its rows in Limits, their size there, the measured size."""
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
        """A connected client, including its slots."""
        return self.client + self._slot("connections") + self.whole_session

    @property
    def whole_session(self) -> int:
        """A session without a connection, including its slot."""
        return self.offline + self._slot("sessions")

    def _slot(self, table: str) -> int:
        """The size of one more slot of a table."""
        limits = limits_of(self.board)
        more = limits.replaced({"sessions": limits.sessions + 1})
        if table != "sessions":
            more = more.replaced({table: getattr(limits, table) + 1})
        rows = [{name: size for name, size, _ in each.rows()} for each in (limits, more)]
        slot: int = rows[1][table] - rows[0][table]
        return slot


def limits_of(board: str) -> Any:
    """The board's Limits."""
    return import_module(f"slotmq_boards.{board}.limits").LIMITS


def measure(board: str, heap: int = 0) -> Measured:
    """Measure the broker with the limits and the heap of a board."""
    facts = boards.load(board)
    claimed = {name: size for name, size, _ in limits_of(board).rows()}
    found = Measured(board, heap or facts.heap_kb * 1024, claimed)
    arch = facts.mpy_arch or micropython.find(32).arch
    found.native = native.in_folder(mpy.build(arch))
    found.native_modules = native.in_folder(mpy.build(arch, packed=False))
    larger = found.heap and found.heap + _UNPACKED_BYTES
    with Process(MEASURE, board, larger, packed=False) as process:
        found.modules = _note(found, process.rows())
    found.borrowed.clear()  # they have other names in the packed code, which counts
    found.left.clear()
    with Process(MEASURE, board, larger) as process:
        found.files = _note(found, process.rows())
    taken = found.all_native if facts.mpy_arch.startswith(_NATIVE_IN_HEAP) else 0
    found.offline, found.client, found.free = _serve(board, found.heap - taken)
    return found


def free_with_journal(board: str) -> int:
    """Free bytes with the clients connected and the journal in a file."""
    return _free(board, SERVE, _PERSISTENCE)


def free_with_raw_flash(board: str) -> int:
    """The same with the journal in raw flash; the simulated device is in both measurements."""
    in_file, in_flash = (
        _free(board, SERVE_FLASH, _PERSISTENCE + more)
        for more in ("persistence_location ./\n", "")
    )
    return free_with_journal(board) - (in_file - in_flash)


def users_and_rules(board: str, users: int, rules: int) -> tuple[int, int]:
    """The heap that so many users and rules take: (tables, code), from a file of each."""
    size = 24 * rules
    limits = limits_of(board).replaced({"users": users, "acl_rules": rules, "acl_bytes": size})
    settings = Settings(password_file="users", acl_file="rules")
    tables = sum(row[1] for row in budget.access_rows(settings, limits))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in range(users):
            passwd.put(folder / "users", f"user{number}", f"secret{number}")
        lines = ["topic readwrite news/#", "pattern readwrite dev/%c/#"]
        lines += [
            f"user user{n % users}\ntopic readwrite home/room{n}/#" for n in range(rules - 2)
        ]
        (folder / "rules").write_text("\n".join([*lines, ""]))
        conf = "allow_anonymous true\nlimit message_bytes 8192\n"
        more = f"limit users {users}\nlimit acl_rules {rules}\nlimit acl_bytes {size}\n"
        more += f"password_file {folder}/users\nacl_file {folder}/rules\n"
        without, both = (_free(board, SERVE, text) for text in (conf, conf + more))
    return tables, without - both - tables


def free_with_recorder(board: str) -> int:
    """Free bytes with the clients connected, the journal and the recorder."""
    return _free(board, SERVE, _PERSISTENCE + _RECORDING, _RECORDING_NATIVE)


def _free(board: str, script: Path, conf: str, *more_native: str) -> int:
    facts = boards.load(board)
    heap = facts.heap_kb * 1024
    if facts.mpy_arch.startswith(_NATIVE_IN_HEAP):
        code = native.in_folder(mpy.build(facts.mpy_arch))
        heap -= sum(code[name] for name in ("slotmq.viper", _JOURNAL_NATIVE, *more_native))
    if script == SERVE_FLASH:
        heap += _DEVICE_BYTES
    return _serve(board, heap, conf, script)[2]


def _serve(board: str, heap: int, conf: str = "", script: Path = SERVE) -> tuple[int, int, int]:
    # -> bytes of a session without a connection, bytes of a client, free bytes with all of them
    with Process(script, board, heap, conf=conf) as process:
        process.rows()
        process.connect().close()  # interns names that stay in the heap
        alone, _ = _settled(process)
        process.leave_session()
        offline = _settled(process)[0] - alone
        for _ in range(_CLIENTS):
            process.connect()
        used, free = _settled(process)
    return offline, -(-(used - alone - offline) // _CLIENTS), free


def _settled(process: Process) -> tuple[int, int]:
    # -> used and free bytes, once what was loaded on demand is unloaded: the turn that answers the
    # first question does that on a machine too busy for one before
    time.sleep(_UNLOAD_S)
    process.ask()
    found = {name: size for _, name, size in process.ask()}
    return found["used"], found["free"]


def _note(found: Measured, answer: list[tuple[str, str, int]]) -> dict[str, int]:
    # -> modules that stay loaded
    kinds = {"borrowed": found.borrowed, "left": found.left, "table": found.tables}
    for kind, name, size in answer:
        if kind in kinds:
            kinds[kind][name] = size
    return {n: size for kind, n, size in answer if kind == "module" and n not in found.borrowed}
