"""The modules of the package, and what each of their top-level names refers to.

A name refers to one of four things: a definition of the package (function, class, variable), a
constant (its value replaces each use), a module of the package, or something imported from
MicroPython, whose import statement stays.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from . import numbers

PACKAGE = "slotmq"
INIT = "__init__"
RUNTIME = "MICROPYTHON"  # the variable that is true on MicroPython
_NATIVE = "_viper"  # suffix of modules with native code
# The packed files. Each entry names the modules of one file; what these import, and no earlier
# file has, goes into it too. Native code depends on the processor, so it has files of its own.
# Any other module becomes a file by itself.
NATIVE, CORE, APP, FIVE = "viper", "core", "app", "v5"
_ENTRIES = (
    "broker net.loop",  # CORE
    "app",
    "v5.extension",  # FIVE
    "protocol.connect",
    "v5.connect",
    "protocol.subscribe",
    "v5.subscribe",
    "access.users",
    "control",
    # The journal; what only its start needs
    "fast.journal_viper",
    "journal.writer",
    "journal.compaction",
    "journal.restore",
    # The recorder with its interceptor; what it seldom needs
    "fast.record_viper",
    "recorder.writer recorder.interceptor",
    "recorder.segments",
    # Access lists
    "fast.senders_viper",
    "access.owners",
    "access.acl",
    "access.recheck_sessions",
    "access.acl_file",
    # WebSocket, TLS
    "fast.frames_viper",
    "net.websocket",
    "platform.poller",
    "net.tls",
    # The surrounding program's messages and clients
    "embed.packets",
    "embed.publishing",
    "embed.in_process",
    # Bridges
    "bridge.options",
    "bridge.mapping",
    "bridge.bridges",
)
# Files whose names are shortened: each character takes heap on a board
_NAMED = {"broker": CORE, "v5.extension": FIVE, "app.start": "start"}
_NAMED |= {"journal.writer": "journal", "status.log_connections": "log_text"}
_NAMED |= {"recorder.writer": "recorder", "recorder.start": "record"}
# Files whose names are longer than needed: MicroPython interns the texts of a file that have at
# most 10 characters, and interned texts stay. So a file that is seldom loaded has a longer name.
_NAMED |= {"access.owners": "session_owners", "embed.asking": "ask_the_hooks"}
_NAMED |= {"journal.start": "journal_start", "journal.compaction": "journal_compaction"}
_NAMED |= {"status.log_full_tables": "log_full_tables", "app.log_dests": "log_destinations"}
_NAMED |= {"embed.publishing": "own_publishing", "bridge.options": "bridge_options"}
_NAMED |= {"bridge.conf": "bridge_configuration", "bridge.start": "bridge_start"}
_NAMED |= {"bridge.mapping": "bridge_prefixes"}
_NAMED |= {"bridge.version5": "bridge_mqtt5", "bridge.secure": "bridge_tls"}
_NAMED |= {"bridge.handshake": "bridge_handshake", "bridge.session": "bridge_session"}
_NAMED |= {"bridge.probe": "bridge_probing", "status.log_bridges": "log_of_bridges"}
_NAMED |= {"platform.dns": "name_server_query"}
_NAMED |= {"net.upgrade": "http_upgrade", "net.protocols": "listener_protocols"}
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
_WITH_NATIVE = "platform.arrays"  # modules with native code import it


@dataclass(frozen=True)
class Own:
    """A definition at the top level of a module of the package."""

    module: str
    name: str


@dataclass(frozen=True)
class Constant:
    """A name whose number or text is known, see numbers.py."""

    value: int | str | bytes


@dataclass(frozen=True)
class OurModule:
    """A module of the package, by its name ("protocol.connect")."""

    name: str


@dataclass(frozen=True)
class Theirs:
    """A name that is imported from MicroPython."""

    name: str


Meaning = Own | Constant | OurModule | Theirs


@dataclass
class Module:
    """A module: its statements without docstrings, and what its top-level names refer to."""

    name: str
    body: list[ast.stmt]
    means: dict[str, Meaning] = field(default_factory=dict)
    needs: list[str] = field(default_factory=list)  # modules of the package, in import order


class Program:
    """modules: by name ("" is the package itself); files: the packed files, with their modules;
    constants: the names of all constants."""

    def __init__(self, texts: dict[str, str]) -> None:
        self.modules: dict[str, Module] = {}
        for path, text in texts.items():
            name = path.removeprefix(f"{PACKAGE}/").removesuffix(".py").replace("/", ".")
            name = name.removesuffix(INIT).removesuffix(".")
            tree = ast.parse(text, path)
            _drop_docstrings(tree)
            tree = _OnMicroPython().visit(tree)
            if tree.body or not name:  # a subpackage's __init__ has only a docstring
                self.modules[name] = Module(name, list(_statements(tree.body)))
        for name in self.modules:
            self._resolve(name, ())
        self.constants = {
            name
            for module in self.modules.values()
            for name, meaning in module.means.items()
            if isinstance(meaning, Constant)
        }
        self.files = self._files()

    def meaning(self, module: str, name: str) -> Meaning | None:
        """What the top-level name of a module refers to; None: it is not defined."""
        return self.modules[module].means.get(name)

    def file_of(self, module: str) -> str:
        """The packed file that a module goes into. ValueError: none."""
        for file, modules in self.files.items():
            if module in modules:
                return file
        raise ValueError(f"{module} is in no file")

    def flat(self, module: str) -> str:
        """The name of a module's packed file, without folders and as short as possible."""
        if module in _NAMED:
            return _NAMED[module]
        last = module.rpartition(".")[2]
        alike = {name for name in self.modules if name.rpartition(".")[2] == last} - {module}
        if all(name.startswith("v5.") for name in alike):
            return last or INIT
        return module.replace(".", "_")

    def imported(self, statement: ast.AST) -> Iterator[tuple[str, Meaning]]:
        """(name, what it refers to) for each name that an import statement binds."""
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                yield alias.asname or alias.name, Theirs(alias.asname or alias.name)
        elif isinstance(statement, ast.ImportFrom):
            for alias in statement.names:
                yield alias.asname or alias.name, self._imported(statement.module or "", alias)

    def _imported(self, source: str, alias: ast.alias) -> Meaning:
        if source == PACKAGE or source.startswith(PACKAGE + "."):
            module = source.removeprefix(PACKAGE).removeprefix(".")
            inner = f"{module}.{alias.name}".removeprefix(".")
            if inner in self.modules:
                return OurModule(inner)
            meaning = self.meaning(module, alias.name)
            if meaning is None:
                raise ValueError(f"{source} has no {alias.name}")
            return meaning
        return Theirs(alias.asname or alias.name)

    def _resolve(self, name: str, under_way: tuple[str, ...]) -> None:
        module = self.modules[name]
        if module.means or name in under_way:
            return
        means: dict[str, Meaning] = {}
        for statement in module.body:
            for needed in _needed(statement, self.modules):
                module.needs.append(needed)
                self._resolve(needed, (*under_way, name))
            means.update(self.imported(statement))
            means.update(_defined(name, statement, means))
            module.means.update(means)

    def _files(self) -> dict[str, list[str]]:
        entries = " ".join(_ENTRIES).split()
        native = [name for name in self.modules if name.endswith(_NATIVE) and name not in entries]
        with_native = [name for name in self.modules if name == _WITH_NATIVE]
        files = {NATIVE: self._closure(with_native + native, ())}
        for entry in _ENTRIES:
            taken = [name for modules in files.values() for name in modules]
            wanted = [name for name in entry.split() if name in self.modules]
            if wanted:
                file = self.flat(entry.split()[0])
                files[file] = [name for name in self._closure(wanted, tuple(taken)) if name]
        taken = [name for modules in files.values() for name in modules]
        alone = {self.flat(name): [name] for name in self.modules if name not in taken}
        if alike := files.keys() & alone.keys():
            raise ValueError(f"two files are called {min(alike)}")
        return files | alone

    def _closure(self, names: list[str], without: tuple[str, ...]) -> list[str]:
        # The names and all they import, without `without`; imported modules come first.
        found: list[str] = []
        seen: set[str] = set(without)

        def add(name: str) -> None:
            if name in seen:
                return
            seen.add(name)
            for needed in self.modules[name].needs:
                add(needed)
            found.append(name)

        for name in names:
            add(name)
        return found


def _drop_docstrings(tree: ast.Module) -> None:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | FUNCTION | ast.ClassDef) and ast.get_docstring(
            node, clean=False
        ):
            node.body = node.body[1:] or [ast.Pass()]


class _OnMicroPython(ast.NodeTransformer):
    """Replaces `if MICROPYTHON` by the branch that a board takes."""

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        negated = isinstance(node.test, ast.UnaryOp) and isinstance(node.test.op, ast.Not)
        asked = node.test.operand if isinstance(node.test, ast.UnaryOp) else node.test
        if not (isinstance(asked, ast.Name) and asked.id == RUNTIME):
            return node
        return (node.orelse if negated else node.body) or ast.Pass()


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        if isinstance(statement, ast.If):
            raise ValueError(f"line {statement.lineno}: the condition is only known at run time")
        yield statement


def _needed(statement: ast.stmt, modules: dict[str, Module]) -> Iterator[str]:
    if not isinstance(statement, ast.ImportFrom) or not statement.module:
        return
    package, _, source = statement.module.partition(".")
    if package == PACKAGE:
        inner = [f"{source}.{alias.name}".removeprefix(".") for alias in statement.names]
        found = [name for name in inner if name in modules]
        yield from found
        if len(found) < len(inner):
            yield source


def _defined(
    module: str, statement: ast.stmt, means: dict[str, Meaning]
) -> Iterator[tuple[str, Meaning]]:
    if isinstance(statement, FUNCTION | ast.ClassDef):
        yield statement.name, Own(module, statement.name)
    known = {name: each.value for name, each in means.items() if isinstance(each, Constant)}
    found = numbers.defined(statement, known) | {RUNTIME: True}
    for target in numbers.targets(statement):
        is_single = target in statement.targets  # type: ignore[attr-defined]
        if not isinstance(target, ast.Name) or not (is_single or target.id in found):
            raise ValueError(f"{module}, line {statement.lineno}: only a name may be assigned")
        name = target.id
        yield name, Constant(found[name]) if name in found else Own(module, name)
