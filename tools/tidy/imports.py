"""Who may import whom in lib/slotmq, and what else of Python each module may use.

The table is the rule; a module without a row is a finding, so that a new one gets
its place on purpose. What a broker does flows downwards: app and start make a
Broker and a Loop; intake hands packets to handlers; these know the steps (deliver,
retain, lifecycle), the steps know the outbox; tables know nobody; which Python it
is, is runtime's affair alone.
"""

import ast
from collections.abc import Iterator
from fnmatch import fnmatch
from typing import NamedTuple

from .source import Finding, Source

_PACKAGE = "slotmq"
_STEPS = "deliver lifecycle outbox retain"
# What a broker makes for the program that it runs in
_PARTS = "intake local loop sysinfo tree version5"
_TABLES = "connections deliveries messages retained sessions subscriptions"


class Row(NamedTuple):
    """What the modules of these names may import; * stands for any text."""

    modules: str
    of_ours: str  # modules of slotmq
    of_python: str = ""


# The first row that fits a module is its row.
RULE = (
    # Inner loops. A CPython twin has the contract of its viper file, and no code of it.
    Row("hot_cpython", "", "array"),
    Row("hot_lane_cpython", "hot_cpython hot_messages_cpython hot_queue_cpython"),
    Row("hot_queue_cpython", "hot_cpython hot_messages_cpython"),
    Row("hot_turn_cpython", "hot_lane_cpython net_cpython", "os time"),
    Row("hot_journal_cpython", "", "re zlib"),
    Row("hot_record_cpython", "", "struct zlib"),
    Row("hot_*_cpython", "hot_cpython", "array"),
    Row("hot", "", "array micropython sys"),
    Row("hot_lane", "hot hot_messages hot_queue", "micropython"),
    Row("hot_queue", "hot hot_messages", "micropython"),
    Row("hot_record", "hot hot_journal", "micropython sys"),
    Row("hot_record_words", "hot_record", "array micropython"),
    Row("hot_*", "arrays hot", "array micropython"),
    Row("arrays", "", "array"),
    Row("runtime_journal", "hot_journal* runtime"),
    Row("runtime_record", "hot_record* ondemand runtime", "sys"),
    Row("columns", "hot runtime"),
    # Sockets, poller, clock: nothing of MQTT
    Row("net_cpython", "", "select socket time"),
    Row("disk_cpython", "", "os"),
    Row("net_micropython", "lwip", "errno micropython select socket sys time"),
    # The one that knows which Python this is
    Row("runtime", "hot* net_*", "micropython sys"),
    # Read by people and by tidy, imported by nobody
    Row("packet", "runtime"),
    # The lock on the heap while the loop turns, for whoever may lift it
    Row("heap", "runtime"),
    # What a start is told
    Row("budget", "runtime"),
    Row("capacities policies", ""),
    Row("limits settings", "ondemand"),
    # Tables: columns only, never one another
    Row(_TABLES, "arrays runtime"),
    # Bytes out, and the steps that touch several tables
    Row("encode", "runtime"),
    Row("outbox", "encode runtime"),
    Row("deliver", "encode heap ondemand outbox runtime"),
    Row("retain", "deliver heap outbox runtime"),
    Row("lifecycle", "deliver heap outbox retain runtime"),
    # A handler never knows another
    Row("ondemand", "heap runtime", "gc sys"),
    Row("admit", "lifecycle ondemand outbox runtime"),
    Row("planting", "runtime"),
    Row("handle_*", f"{_STEPS} admit encode heap ondemand planting runtime"),
    Row("joining5", "connect5"),
    Row(
        "auth",
        "admit answers5 connack5 connect5 encode handle_connect ondemand properties runtime",
    ),
    Row("joining subscribing subscribing5", "handle_* runtime subscribe5"),
    # Version 5 knows what version 3 has; nobody but the broker knows of version 5
    Row("properties", "arrays encode runtime"),
    Row("aliases", "arrays runtime"),
    Row("shares", "arrays deliver runtime"),
    Row(
        "version5",
        "*5 aliases arrays closing heap lifecycle ondemand properties runtime scram shares",
    ),
    Row(
        "*5", f"{_STEPS} *5 admit encode handle_* heap intake ondemand planting properties runtime"
    ),
    Row("intake", "deliver encode handle_* heap lifecycle ondemand runtime"),
    Row("local", "deliver heap inside ondemand outbox retain runtime"),
    # On what a journal lies: bytes of generations, and nothing of what they mean
    Row("journal_flash", "heap ondemand runtime", "binascii struct"),
    Row("journal_ring", "runtime", "binascii struct"),
    Row("journal_file", "heap ondemand runtime", "os"),
    Row("journal_disk", "runtime", "binascii os struct"),
    # Attached to a broker that is to keep what it promises; restore is borrowed by its start
    Row("journal*", "encode heap journal* ondemand runtime runtime_journal"),
    # The recorder, which stands before what the broker and its loop call
    Row("recorder", "heap ondemand runtime runtime_record", "os"),
    Row("taps", "handle_publish heap lifecycle ondemand runtime runtime_record"),
    Row("record_file", "runtime", "binascii os struct"),
    Row("record_disk", "heap record_file runtime", "os"),
    Row("record_wall", "runtime", "struct"),
    Row("record_control", "ondemand record_file record_wall recorder runtime", "gc struct"),
    Row(
        "record_remote",
        "log ondemand record_file record_wall retain runtime",
        "binascii json struct",
    ),
    Row(
        "record",
        "app log ondemand places record_control record_disk record_file record_wall recorder"
        " runtime settings taps",
        "binascii gc machine os struct time",
    ),
    Row("keeping", "app lifecycle log ondemand places record restore runtime settings", "gc sys"),
    Row(
        "places",
        "disk_cpython journal_file journal_flash runtime",
        "errno fcntl ffi os slotmq_boards vfs",
    ),
    Row("restore*", "journal* keeping ondemand planting restore* runtime"),
    # Made or borrowed by a broker that is asked for it
    Row("sysinfo", "heap ondemand runtime timers", "array"),
    Row("systopics", "__init__ lifecycle ondemand retain runtime", "gc"),
    Row("tree", "runtime"),
    Row("steering", "hooks lifecycle retrying runtime"),
    Row("epoch retrying", "runtime"),
    Row("refusals", "runtime"),
    Row("telling", "ondemand runtime", "io socket sys traceback"),
    Row("reason", "runtime telling"),
    # For the program that a broker is part of
    Row("inside", "heap inside_client inside_words local runtime serving"),
    Row("inside_client", "heap inside_words intake local ondemand runtime"),
    Row("inside_words", "local runtime"),
    Row("hooks", "heap local runtime"),
    Row("serving", "runtime", "asyncio"),
    Row(
        "broker", f"{_TABLES} {_STEPS} {_PARTS} arrays heap limits ondemand runtime settings", "gc"
    ),
    Row("lwip", "arrays heap ondemand runtime", "machine"),
    Row("lwip_layout", "runtime"),
    Row("timers", "heap ondemand runtime"),
    Row("doors", "closing heap ondemand runtime"),
    Row("closing", "heap runtime"),
    Row("loop", "closing deliver doors heap intake ondemand runtime timers"),
    # The program around it. start and conf are borrowed by name, and given back. Which
    # board's preset start loads is the user's word; it is the only name outside of lib.
    Row("log", "runtime", "sys time"),
    Row("idf", "runtime", "esp32 gc"),
    Row("scram", "runtime", "binascii hashlib os"),
    Row("conf", "capacities log policies runtime settings"),
    Row("app", "conf keeping log record runtime settings start", "os sys"),
    Row(
        "start",
        "__init__ app broker budget conf connections idf journal ondemand runtime settings "
        "sysinfo version5",
        "errno gc os slotmq_boards sys",
    ),
    Row("__init__", "broker limits settings"),
)
# A board's preset is one Limits; where its journal lies, its own modules tell.
_BOARDS = {
    "limits.py": Row("limits", "__init__"),
    "region.py": Row("region", "", "esp32 os rp2 vfs"),
    "region_rp2.py": Row("region_rp2", "", "os rp2 vfs"),
    "region_esp32.py": Row("region_esp32", "", "esp32"),
}


def check(sources: list[Source]) -> Iterator[Finding]:
    """Every import that the table does not have."""
    ours = {source.module for source in sources if source.is_library}
    for source in sources:
        row = _row(source)
        if row is None and source.is_library:
            yield Finding("import", source.path, "no row of RULE in tools/tidy/imports.py fits it")
        elif row is not None:
            yield from _check_file(source, row, ours)


def _row(source: Source) -> Row | None:
    if source.path.startswith("boards/"):
        return _BOARDS.get(source.name)
    fitting = (row for row in RULE if _fits(source.module, row.modules))
    return next(fitting, None) if source.is_library else None


def _check_file(source: Source, row: Row, ours: set[str]) -> Iterator[Finding]:
    for name in sorted(set(_imported(source.tree))):
        first, _, rest = name.partition(".")
        part = rest.partition(".")[0]
        if first != _PACKAGE:
            allowed = _fits(name, row.of_python)
        else:
            allowed = _fits(part if part in ours else "__init__", row.of_ours)
        if not allowed:
            yield Finding("import", f"{source.path}:{name}", f"must not import {name}")


def _fits(name: str, patterns: str) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns.split())


def _imported(tree: ast.AST) -> Iterator[str]:
    """The dotted names of what is imported, `from a import b` as a.b."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = "." * node.level + (node.module or "")
            inside = origin.startswith(_PACKAGE)
            yield from (f"{origin}.{alias.name}" if inside else origin for alias in node.names)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
            yield from _imported_by_call(node.func.id, node.args[0])


def _imported_by_call(function: str, argument: ast.expr) -> Iterator[str]:
    """__import__("slotmq_boards.%s" % name) and borrow("conf", ...), app.py's way."""
    text = argument.left if isinstance(argument, ast.BinOp) else argument
    name = text.value if isinstance(text, ast.Constant) and isinstance(text.value, str) else "?"
    if function == "__import__" and name != f"{_PACKAGE}.":  # that is borrow() itself
        yield name.partition(".")[0]
    elif function == "borrow":
        yield f"{_PACKAGE}.{name}"
