"""A constant of lib/slotmq has the same value in all files that repeat it.

MicroPython inlines `_NAME = const(n)` only in its own file, so each file repeats those that it
uses. protocol/packet.py has the right values; constants that are not there (states, indexes of
stats) must be equal in all files.
"""

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from .source import LIBRARY, Finding, Source

_HOME = f"{LIBRARY}protocol/packet.py"
_NAME = re.compile(r"_?[A-Z][A-Z0-9_]*")
_SUM = (ast.Constant, ast.UnaryOp, ast.USub, ast.BinOp, ast.operator, ast.Name, ast.Load)


class Constant(NamedTuple):
    path: str
    name: str  # with the underscore that makes it private
    value: int


def check(sources: list[Source]) -> Iterator[Finding]:
    """Constants that differ from protocol/packet.py, or from most other files."""
    library = [source for source in sources if source.is_library]
    found = [constant for source in library for constant in constants(source)]
    for name in sorted({constant.name for constant in found}):
        same = [constant for constant in found if constant.name == name]
        right = next((c.value for c in same if c.path == _HOME), _most(same))
        for wrong in [constant for constant in same if constant.value != right]:
            others = next(c.path for c in same if c.value == right)
            what = f"is {wrong.value:#x}, and {right:#x} in {others}"
            yield Finding("const", f"{wrong.path}:{name}", what)


def constants(source: Source) -> Iterator[Constant]:
    """NAME = const(sum) at the top level of a file; in the files of fast/ for one runtime also
    NAME = number."""
    values: dict[str, int] = {}
    plain = source.module.endswith(("_viper", "_cpython"))
    for node in source.tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            value = _value(node.value, values, plain=plain)
            if value is not None and _NAME.fullmatch(name):
                values[name] = value
                yield Constant(source.path, "_" + name.lstrip("_"), value)


def _value(node: ast.expr, values: dict[str, int], *, plain: bool) -> int | None:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "const":
        node = node.args[0]
    elif not plain:
        return None
    if not all(isinstance(part, _SUM) for part in ast.walk(node)):
        return None
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    if not names <= values.keys():
        return None
    value = eval(compile(ast.Expression(node), "const", "eval"), {"__builtins__": {}}, values)
    return value if type(value) is int else None


def _most(same: list[Constant]) -> int:
    values = [constant.value for constant in same]
    return max(values, key=values.count)
