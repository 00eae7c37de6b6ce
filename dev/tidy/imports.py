"""Import statements of lib/slotmq go downwards only, and use few of Python's modules.

Each folder of lib/slotmq has a floor. A module imports from its own folder and from lower floors.
A module that is loaded on demand is named in a string ("protocol.connect"). It must exist; if it
is on a higher floor, UPWARDS must allow it.
"""

import ast
from collections.abc import Iterator
from fnmatch import fnmatch

from .source import LIBRARY, Finding, Source

_PACKAGE = "slotmq"
FLOORS = (
    ("constants",),
    ("platform",),
    ("fast",),
    ("config", "tables"),
    ("access", "delivery"),
    ("protocol", "journal"),
    ("net", "embed"),
    ("v5", "status", "bridge"),
    ("broker", "control", "interceptors"),
    ("broker_cpython",),
    ("__init__",),
    ("app", "recorder"),
)
_FLOOR = {part: floor for floor, parts in enumerate(FLOORS) for part in parts}
_VERSION = f"{_PACKAGE}.__version__"  # allowed everywhere
# Functions whose first argument names a module that is loaded on demand, and the modules that
# define them: only these functions load the module of a variable
_VARIABLE = "?"
_LOADS = {
    "take": "platform.ondemand",
    "borrow": "platform.ondemand",
    "control": "protocol.dispatch",
    "module": "bridge.link",
}
# The loads on demand that do not go downwards: folder, module, reason. lib/DESIGN.md shows them.
UPWARDS = (
    ("platform", "status.log_connections", "texts of the log"),
    ("config", "app.log_dests", "a reload opens the log again"),
    ("platform", "net.tls", "a listener with a certificate"),
    ("config", "net.tls_context", "a listener's certificate"),
    ("config", "access.users_file", "a reload reads the users again"),
    ("delivery", "journal.compaction", "does a message need a row, while the medium is full?"),
    ("protocol", "journal.compaction", "is there space on the medium for a packet?"),
    ("protocol", "v5.connect", "CONNECT has the version in it"),
    ("protocol", "v5.auth", "reason codes of a refused CONNECT"),
    ("protocol", "embed.publishing", "the program's own clients"),
    ("protocol", "embed.asking", "the program's hooks"),
    ("journal", "protocol.subscribe", "the start unloads it, with what the journal used of it"),
    ("journal", "recorder.start", "the recorder starts between two steps of the journal's start"),
    ("net", "control", "the loop's end"),
    ("net", "status.log_full_tables", "texts of the log"),
    ("embed", "interceptors", "hooks and the program's clients stand before the broker"),
    ("status", "interceptors", "the log as messages is sent at the end of a turn"),
    ("embed", "status.log_connections", "hooks get addresses as they are in the log"),
    ("broker", "control", "reload, listeners"),
    ("config", "bridge.conf", "the keys below a `connection`"),
    ("config", "bridge.options", "their row of the budget"),
    ("embed", "bridge.start", "the program begins a bridge"),
    ("bridge", "interceptors", "bridges stand before the broker"),
    ("bridge", "status.log_bridges", "texts of the log"),
    ("bridge", "status.log_reasons", "names of reason codes"),
    ("app", "recorder.start", "the program has a recorder"),
)
# Python's own modules, by the module that may use them: no sockets in protocol/.
PYTHON = {
    "config.rare_kinds": "os",
    "config.other_keys": "difflib",
    "config.tls_listeners": "hashlib os sys",
    "platform.arrays": "array",
    "platform.arrays_cpython": "array",
    "platform.dial_cpython": "_thread os socket",
    "platform.dial_micropython": "errno machine network os socket",
    "platform.dns": "os socket",
    "platform.esp32_memory": "esp32 gc",
    "platform.filesystem_cpython": "os",
    "platform.log": "sys time",
    "platform.lwip": "machine",
    "platform.ondemand": "gc sys",
    "platform.runtime": "micropython sys",
    "embed.own_messages": "micropython",
    "platform.sockets_cpython": "os select socket stat time",
    "platform.syslog_cpython": "syslog",
    "platform.threads_cpython": "_thread",
    "platform.tls_cpython": "errno ssl",
    "platform.tls_context_cpython": "os ssl time",
    "platform.x509": "binascii time",
    "net.tls_context": "io tls",
    "net.tls_micropython": "errno io sys uctypes",
    "platform.sockets_micropython": "errno socket",
    "platform.listening_micropython": "micropython select socket sys time",
    "fast.turn_cpython": "os time",
    "fast.pages_cpython": "mmap",
    "fast.*_cpython": "array re struct zlib",
    "fast.*_viper": "array micropython sys",
    "net.upgrade": "binascii hashlib",
    "net.http_files": "binascii os",
    "delivery.storms_cpython": "re",
    "journal.location": "errno fcntl ffi os slotmq_boards vfs",
    "journal.start": "gc sys",
    "journal.medium_*": "binascii os struct",
    "journal.*": "struct",
    "embed.asyncio_task": "asyncio",
    "embed.restoring_cpython": "types",
    "embed.serving_cpython": "asyncio",
    "access.users": "hashlib os",
    "access.login": "hashlib",
    "access.pbkdf2": "hashlib",
    "access.users_file": "binascii",
    "access.mosquitto_cpython": "argon2 base64 binascii hashlib",
    "v5.scram": "binascii os",
    "v5.scram_steps": "binascii hashlib",
    "status.log_connections": "socket",
    "status.log_defects": "io sys traceback",
    "status.sys_state": "array",
    "status.sys_topics": "gc",
    "status.sys_more_cpython": "resource sys",
    "broker": "gc",
    "broker_cpython": "_thread collections os",
    "app": "os sys",
    "app.log_dests": "sys",
    "app.start": "errno ffi gc os slotmq_boards sys",
    "recorder.*": "binascii gc json machine os struct time",
}
# What the files of a board may import
_BOARDS = {
    "limits.py": f"{_PACKAGE}.Limits",
    "region.py": "esp32 os rp2 vfs",
    "region_rp2.py": "os rp2 vfs",
    "region_esp32.py": "esp32",
}


def check(
    sources: list[Source], upwards: tuple[tuple[str, str, str], ...] = UPWARDS
) -> Iterator[Finding]:
    """Imports and loads on demand that the floors or the tables do not allow."""
    ours = {module(source) for source in sources if source.is_library}
    allowed = {(part, name) for part, name, _ in upwards if name in ours}
    unused = set(allowed)
    for source in sources:
        if source.is_library:
            yield from _check_floors(source, ours)
            for name, what in _check_loads(source, ours):
                load = module(source).partition(".")[0], name
                unused.discard(load)
                if what and load not in allowed:
                    yield _finding(source, name, what)
        elif source.path.startswith("boards/") and source.name in _BOARDS:
            for name in sorted(set(_imported(source.tree))):
                if name not in _BOARDS[source.name].split():
                    yield _finding(source, name, f"must not import {name}")
    for part, name in sorted(unused):
        yield Finding("import", f"{LIBRARY}{part}", f"does not load {name}: UPWARDS is too long")


def module(source: Source) -> str:
    """The name of a file of lib/slotmq in an import, without "slotmq."."""
    name = source.path.removeprefix(LIBRARY).removesuffix(".py").replace("/", ".")
    return name.removesuffix(".__init__")


def _check_floors(source: Source, ours: set[str]) -> Iterator[Finding]:
    own = module(source)
    part = own.partition(".")[0]
    if part not in _FLOOR:
        yield Finding("import", source.path, "it has no floor in dev/tidy/imports.py")
        return
    for name in sorted(set(_imported(source.tree))):
        first, _, rest = name.partition(".")
        other = rest.partition(".")[0]
        if first != _PACKAGE:
            if not _may_use(own, name):
                yield _finding(source, name, f"must not import {name}")
        elif other in _FLOOR or rest in ours:
            if part != other and _FLOOR.get(other, len(FLOORS)) >= _FLOOR[part]:
                yield _finding(source, name, f"imports upwards, {name}")
        elif name != _VERSION and _FLOOR["__init__"] >= _FLOOR[part]:
            yield _finding(source, name, f"imports upwards, {name}")


def _check_loads(source: Source, ours: set[str]) -> Iterator[tuple[str, str]]:
    """(module, what is wrong unless it is allowed) for each load that does not go downwards."""
    part = module(source).partition(".")[0]
    for name in _loaded_by_name(source):
        other = name.partition(".")[0]
        if name == _VARIABLE:
            yield name, "loads the module of a variable"
        elif name not in ours:
            yield name, f"loads slotmq.{name}, which does not exist"
        elif part != other and _FLOOR.get(other, len(FLOORS)) >= _FLOOR.get(part, len(FLOORS)):
            yield name, f"loads upwards, {name}"


def _finding(source: Source, name: str, what: str) -> Finding:
    return Finding("import", f"{source.path}:{name}", what)


def _may_use(own: str, name: str) -> bool:
    return any(fnmatch(own, parts) and name in names.split() for parts, names in PYTHON.items())


def _imported(tree: ast.AST) -> Iterator[str]:
    """The dotted names of all imports, `from a import b` as a.b."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = "." * node.level + (node.module or "")
            inside = origin.startswith(_PACKAGE)
            yield from (f"{origin}.{alias.name}" if inside else origin for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "__import__":
            name = _imported_by_call(node.args[0])
            if name != _PACKAGE:  # else ondemand.py's, see _loaded_by_name
                yield name


def _imported_by_call(argument: ast.expr) -> str:
    """The package in __import__("slotmq_boards.%s" % name); "?" if the name is dynamic."""
    if isinstance(argument, ast.Constant):
        return str(argument.value)
    text = argument.left if isinstance(argument, ast.BinOp) else argument
    name = text.value if isinstance(text, ast.Constant) and isinstance(text.value, str) else "?"
    return name.partition(".")[0]


def _loaded_by_name(source: Source) -> Iterator[str]:
    """The modules that are loaded on demand."""
    loaders = [name for name, home in _LOADS.items() if home == module(source)]
    inner = {
        node
        for function in ast.walk(source.tree)
        if isinstance(function, ast.FunctionDef) and function.name in loaders
        for node in ast.walk(function)
    }
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and node.args:
            owner, _, function = ast.unparse(node.func).rpartition(".")
            name = node.args[0].value if isinstance(node.args[0], ast.Constant) else None
            if function in _LOADS and isinstance(name, str):
                yield name
            elif function in _LOADS and owner in ("", "ondemand") and node not in inner:
                yield _VARIABLE
