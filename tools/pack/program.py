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
# What goes into one file. Native code has files of its own: it is bound to a processor.
HOT, CORE, APP, FIVE = "hot", "core", "app", "five"
_ON_DEMAND = ("joining", "joining5", "subscribing", "subscribing5")
_ENTRIES = {CORE: "broker", APP: "app", FIVE: "version5"} | {name: name for name in _ON_DEMAND}
# The journal, for who wants one, and what only its start needs.
_KEEPING = ("hot_journal", "journal", "journal_control", "restore")
_ENTRIES |= {name: name for name in _KEEPING}
# The recorder with its taps; what it does seldom are files of their own.
_ENTRIES |= {"hot_record": "hot_record", "recorder": "recorder taps"}
_ENTRIES |= {"hot_record_words": "hot_record_words"}
_ENTRIES |= {"record_control": "record_control"}
# What the broker's own program publishes, and its clients.
_ENTRIES |= {"local": "local", "inside": "inside"}
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
_WITH_HOT = "arrays"  # the hot files import it


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
            name = path.removeprefix(f"{PACKAGE}/").removesuffix(".py")
            name = "" if name == INIT else name
            tree = ast.parse(text, path)
            _drop_docstrings(tree)
            tree = _OnMicroPython().visit(tree)
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

    def imported(self, statement: ast.AST) -> Iterator[tuple[str, Meaning]]:
        """What a statement binds, if it imports."""
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                yield alias.asname or alias.name, Theirs(alias.asname or alias.name)
        elif isinstance(statement, ast.ImportFrom):
            for alias in statement.names:
                yield alias.asname or alias.name, self._imported(statement.module or "", alias)

    def _imported(self, source: str, alias: ast.alias) -> Meaning:
        if source == PACKAGE and alias.name in self.modules:
            return OurModule(alias.name)
        if source == PACKAGE or source.startswith(PACKAGE + "."):
            module = source.removeprefix(PACKAGE).removeprefix(".")
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
        hot = [name for name in self.modules if name == _WITH_HOT or name.startswith(HOT)]
        hot = [name for name in hot if name not in _ENTRIES]
        files = {HOT: self._closure(hot, ())}
        for file, entry in _ENTRIES.items():
            taken = [name for modules in files.values() for name in modules]
            entries = [name for name in entry.split() if name in self.modules]
            if entries:
                files[file] = [name for name in self._closure(entries, tuple(taken)) if name]
        taken = [name for modules in files.values() for name in modules]
        alone = {name or INIT: [name] for name in self.modules if name not in taken}
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
    if isinstance(statement, ast.ImportFrom) and statement.module:
        if statement.module == PACKAGE:
            names = [alias.name for alias in statement.names]
            yield from (name if name in modules else "" for name in names)
        elif statement.module.startswith(PACKAGE + "."):
            yield statement.module.removeprefix(PACKAGE + ".")


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
