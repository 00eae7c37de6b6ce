"""The fast paths of both runtimes use the declared positions of columns and of their rows.

lib/slotmq/fast/columns.py makes the table `p` for viper code, which calls it `o` or `c`. The
expression of a column gives its name (d.prev is D_PREV), and constants.py numbers these names in
the same order. Only such names index the table.
CPython's files must unpack whole tuples, into the declared names or their first letters. Rows,
which are short arrays of numbers with different meanings, are indexed by names too: in all files
where they are attributes (deliveries.count), as are the packet record and broker.stats.
"""

import ast
import re
from collections.abc import Iterator

from slotmq_tools.pack.numbers import Value

from .consts import HOME as CONSTANTS
from .consts import constants
from .source import LIBRARY, Finding, Source

_FAST = f"{LIBRARY}fast/"
HOME = f"{_FAST}columns.py"
_TABLE = "p"
_NAMES_OF_TABLE = ("o", "c")  # in viper code
_OTHER_TABLES = ("record_",)  # files whose `o` is a table of their own
# Names of the tuples where they are declared, and in the files that unpack them.
_TUPLES = {HOME: "tables", f"{LIBRARY}tables/connections.py": "columns"}
_UNPACKED = {"tables", "columns"}
_ROWS = {"pkt", "stats"}
# The same as attributes; in fast/ also the local variables of these names
_ROWS_OF_TABLES = {"count", "counts", "window", "reassembly", "ids_high", "pending", "clock"}
_COLUMN = re.compile(r"ptr(8|16|32)\(int\(o\) - o\[\w+\]\)")  # a column or row of the table


def check(sources: list[Source]) -> Iterator[Finding]:
    """Constants, indexes and unpackings that differ from the declaration."""
    numbered: dict[str, Value] = {}
    positions: dict[str, int] = {}
    tuples: list[list[str]] = []
    for source in sources:
        if source.path == CONSTANTS:
            numbered = constants(source)
        elif source.path == HOME:
            for name, line in _table(source):
                if name in positions:
                    yield Finding("column", f"{HOME}:{line}", f"{name} is declared twice")
                positions[name] = len(positions)
        if source.path in _TUPLES:
            tuples += _declared(source, _TUPLES[source.path])
    for name, at in positions.items():
        if numbered.get(name) != at:
            yield Finding("column", f"{CONSTANTS}:{name}", f"is {at} in {HOME}")
    for source in sources:
        if source.is_library:
            yield from _check_rows(source)
        if source.path.startswith(_FAST):
            if source.module.endswith("_viper"):
                yield from _check_positions(source, positions)
            elif source.module.endswith("_cpython"):
                yield from _check_tuples(source, tuples)


def _table(source: Source) -> Iterator[tuple[str, int]]:
    """The name of each position, and the line of its row."""
    for line, value in _tuples(source, _TABLE):
        for element in value.elts:
            text = ast.unparse(element).removeprefix("broker.")
            yield text.replace(".", "_").upper(), line


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
    if source.name.startswith(_OTHER_TABLES):
        return
    for node in ast.walk(source.tree):
        wrong = ""
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) in _NAMES_OF_TABLE:
            if any(ast.unparse(index) not in positions for index in _choices(node.slice)):
                wrong = f"{HOME} declares no such column"
        elif isinstance(node, ast.Assign) and ast.unparse(node.value) == "ptr32(c)":
            wrong = "" if ast.unparse(node.targets[0]) == "o" else "call the table o"
        if wrong:
            what = f"{ast.unparse(node)}: {wrong}"
            yield Finding("column", f"{source.path}:{getattr(node, 'lineno', 0)}", what)


def _choices(index: ast.expr) -> list[ast.expr]:
    return [index.body, index.orelse] if isinstance(index, ast.IfExp) else [index]


def _check_rows(source: Source) -> Iterator[Finding]:
    """Bare numbers as indexes of rows, and in viper code of anything that the table gives."""
    in_fast = source.path.startswith(_FAST)
    is_other = source.name.startswith(_OTHER_TABLES)
    for function in [each for each in ast.walk(source.tree) if isinstance(each, ast.FunctionDef)]:
        nodes = list(ast.walk(function))
        given = {
            ast.unparse(node.targets[0])
            for node in nodes
            if isinstance(node, ast.Assign) and _is_column(node.value) and not is_other
        }
        for node in nodes:
            if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
                row = node.value
                is_of_table = in_fast or isinstance(row, ast.Attribute)
                rows = _ROWS | _ROWS_OF_TABLES if is_of_table else _ROWS
                if _last(row) in rows | given or _is_column(row):
                    what = f"{ast.unparse(node)}: name the position"
                    yield Finding("column", f"{source.path}:{node.lineno}", what)


def _is_column(node: ast.expr) -> bool:
    return bool(_COLUMN.fullmatch(ast.unparse(node)))


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
