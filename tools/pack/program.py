"""The modules of a package, and what each of their top-level names means.

A name is one of four things: a definition of ours (function, class, variable), a
constant, which is put in where it is used, a module of ours, or something of
Python's, whose import statement stays as it is.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

PACKAGE = "slotmq"
INIT = "__init__"
RUNTIME = "MICROPYTHON"  # true in all that is packed
_NATIVE = "_viper"  # how the names of modules with native code end
# What goes into one file, by the modules that it is made for. Native code has files of its
# own: it is bound to a processor. Any other module that these do not need is a file alone.
NATIVE, CORE, APP, FIVE = "viper", "core", "app", "v5"
_ENTRIES = (
    "broker",  # CORE
    "app",
    "v5.extension",  # FIVE
    "protocol.connect",
    "v5.connect",
    "protocol.subscribe",
    "v5.subscribe",
    # The journal, for who wants one, and what only its start needs
    "fast.journal_viper",
    "journal.writer",
    "journal.compaction",
    "journal.restore",
    # The recorder with its interceptor; what it does seldom is a file of its own
    "fast.record_viper",
    "recorder.writer recorder.interceptor",
    "fast.record_words_viper",
    "recorder.segments",
    # What the broker's own program publishes, and its clients
    "embed.local",
    "embed.in_process",
)
# Shorter than they would be called else: a name costs a board bytes of heap.
_NAMED = {"broker": CORE, "v5.extension": FIVE, "app.start": "start"}
_NAMED |= {"journal.writer": "journal", "journal.start": "keep"}
_NAMED |= {"status.log_connections": "log_text", "status.log_full_tables": "log_full"}
_NAMED |= {"recorder.writer": "recorder", "recorder.start": "record"}
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
_WITH_NATIVE = "platform.arrays"  # modules with native code import it


@dataclass(frozen=True)
class Own:
    """What a module of ours defines at its top."""

    module: str
    name: str


@dataclass(frozen=True)
class Constant:
    """A name that stands for a number or a text."""

    value: int | str | bytes


@dataclass(frozen=True)
class OurModule:
    name: str


@dataclass(frozen=True)
class Theirs:
    """What an import statement of Python's own modules binds."""

    name: str


Meaning = Own | Constant | OurModule | Theirs


@dataclass
class Module:
    """One source file: its statements without docstrings, and its names."""

    name: str
    body: list[ast.stmt]
    means: dict[str, Meaning] = field(default_factory=dict)
    needs: list[str] = field(default_factory=list)  # modules of ours, in import order


class Program:
    """All modules of the package, by name; "" is the package itself."""

    def __init__(self, texts: dict[str, str]) -> None:
        self.modules: dict[str, Module] = {}
        for path, text in texts.items():
            name = path.removeprefix(f"{PACKAGE}/").removesuffix(".py").replace("/", ".")
            name = name.removesuffix(INIT).removesuffix(".")
            tree = ast.parse(text, path)
            _drop_docstrings(tree)
            tree = _OnMicroPython().visit(tree)
            if tree.body or not name:  # else the first lines of a folder, for people
                self.modules[name] = Module(name, list(_statements(tree.body)))
        for name in self.modules:
            self._resolve(name, ())
        self.files = self._files()

    def meaning(self, module: str, name: str) -> Meaning | None:
        return self.modules[module].means.get(name)

    def file_of(self, module: str) -> str:
        """The file that a module goes into, by import name."""
        for file, modules in self.files.items():
            if module in modules:
                return file
        raise ValueError(f"{module} is in no file")

    def flat(self, module: str) -> str:
        """What the file of a module is called, where it is a file alone: there are no folders.

        Each name that is longer takes bytes of a board's heap."""
        if module in _NAMED:
            return _NAMED[module]
        last = module.rpartition(".")[2]
        alike = {name for name in self.modules if name.rpartition(".")[2] == last} - {module}
        if all(name.startswith("v5.") for name in alike):
            return last or INIT
        return module.replace(".", "_")

    def imported(self, statement: ast.AST) -> Iterator[tuple[str, Meaning]]:
        """What a statement binds, if it imports."""
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
            means.update(_defined(name, statement))
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
        # In the order in which Python would run them: what one needs is before it.
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
    """Leaves of what asks which Python this is the branch that a board takes."""

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
            raise ValueError(f"line {statement.lineno}: cannot tell which branch is taken")
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


def _defined(module: str, statement: ast.stmt) -> Iterator[tuple[str, Meaning]]:
    if isinstance(statement, FUNCTION | ast.ClassDef):
        yield statement.name, Own(module, statement.name)
    elif isinstance(statement, ast.Assign):
        for target in statement.targets:
            if not isinstance(target, ast.Name):
                raise ValueError(
                    f"{module}, line {statement.lineno}: more than a name is assigned"
                )
            yield target.id, _value(module, target.id, statement.value)


def _value(module: str, name: str, value: ast.expr) -> Meaning:
    if name == RUNTIME:
        return Constant(True)
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "const":
        return Constant(eval(compile(ast.Expression(value.args[0]), name, "eval"), {}))
    return Own(module, name)
