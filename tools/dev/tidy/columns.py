"""The fast paths of both runtimes use the declared positions of columns.

lib/slotmq/fast/columns.py declares the table `p` for viper code: a comment above each row has its
first position and the names of all. A const() with such a name must have this value. CPython's
files must unpack whole tuples, into the declared names or their first letters.
"""

import ast
import re
from collections.abc import Iterator

from .consts import constants
from .source import LIBRARY, Finding, Source

HOME = f"{LIBRARY}fast/columns.py"
_TABLE = "p"
# Names of the tuples where they are declared, and in the files that unpack them.
_TUPLES = {HOME: "tables", f"{LIBRARY}tables/connections.py": "columns"}
_UNPACKED = {"tables", "columns"}
_NAMES = re.compile(r"^ *# (\d+): ([_A-Z0-9 ]+)$", re.MULTILINE)


def check(sources: list[Source]) -> Iterator[Finding]:
    """Constants and unpackings that differ from the declaration."""
    positions: dict[str, int] = {}
    tuples: list[list[str]] = []
    for source in sources:
        if source.path == HOME:
            for at, (name, line) in enumerate(_table(source)):
                if not name or name in positions:
                    yield Finding(
                        "column",
                        f"{HOME}:{line}",
                        "the comment above the row does not name its positions",
                    )
                positions[name] = at
        if source.path in _TUPLES:
            tuples += _declared(source, _TUPLES[source.path])
    for source in sources:
        if source.path.startswith(f"{LIBRARY}fast/") and source.module.endswith("_viper"):
            yield from _check_positions(source, positions)
        elif source.path.startswith(f"{LIBRARY}fast/") and source.module.endswith("_cpython"):
            yield from _check_tuples(source, tuples)


def _table(source: Source) -> Iterator[tuple[str, int]]:
    """The name of each position, or "", and the line of its row."""
    lines = source.text.splitlines()
    at = after = 0
    for row, value in _tuples(source, _TABLE):
        names: list[str] = []
        for number, found in _NAMES.findall("\n".join(lines[after : row - 1])):
            names += found.split() if int(number) == at + len(names) else []
        count = len(value.elts)
        yield from ((name, row) for name in (names if len(names) == count else [""] * count))
        at += count
        after = value.end_lineno or 0


def _declared(source: Source, variable: str) -> Iterator[list[str]]:
    for _, value in _tuples(source, variable):
        yield [_last(element) for element in value.elts]


def _tuples(source: Source, variable: str) -> Iterator[tuple[int, ast.Tuple]]:
    """The line and the value of each `variable = (...)` and `variable += (...)`."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Assign | ast.AugAssign) and isinstance(node.value, ast.Tuple):
            target = node.target if isinstance(node, ast.AugAssign) else node.targets[0]
            if _last(target) == variable:
                yield node.lineno, node.value


def _check_positions(source: Source, positions: dict[str, int]) -> Iterator[Finding]:
    for constant in constants(source):
        right = positions.get(constant.name, constant.value)
        if constant.value != right:
            what = f"is {constant.value}, and {right} in {HOME}"
            yield Finding("column", f"{source.path}:{constant.name}", what)


def _check_tuples(source: Source, tuples: list[list[str]]) -> Iterator[Finding]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Subscript) and _last(node.value) in _UNPACKED:
            yield Finding("column", f"{source.path}:{node.lineno}", "unpack the tuple by name")
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
            names = [_last(each).strip("_") for each in node.targets[0].elts]
            if _last(node.value) in _UNPACKED and not any(_agree(names, each) for each in tuples):
                what = f"unpacks {ast.unparse(node.targets[0])}, which no declaration has"
                yield Finding("column", f"{source.path}:{node.lineno}", what)


def _agree(names: list[str], declared: list[str]) -> bool:
    same = len(names) == len(declared)
    return same and all(d.startswith(n) for n, d in zip(names, declared, strict=True))


def _last(node: ast.expr) -> str:
    """broker.conns.columns -> columns."""
    return ast.unparse(node).rpartition(".")[2]
