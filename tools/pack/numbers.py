"""Constants: names in capitals to which the top level of a module gives a number.

    NONE = 0xFFFF
    GONE = 8 | 16 | 32
    IN_USE, MOST_IN_USE = range(2)
    LAYOUT = const(">BIHB")  # a text, which is repeated where it is used

Others import them. Packing replaces each use by its number. Modules that are not packed get them
as `_NONE = const(65535)` in each file that uses one: MicroPython inlines const() within a file
only, and viper code must know its numbers when it is compiled.
"""

import ast
import re
from collections.abc import Mapping

Value = int | str | bytes
_CAPITALS = re.compile(r"_?[A-Z][A-Z0-9_]*")
_SUM = (ast.Constant, ast.UnaryOp, ast.USub, ast.BinOp, ast.operator, ast.Name, ast.Load)


def targets(statement: ast.stmt) -> list[ast.expr]:
    """What an assignment assigns to; else nothing."""
    if not isinstance(statement, ast.Assign):
        return []
    return [
        each
        for target in statement.targets
        for each in (target.elts if isinstance(target, ast.Tuple) else [target])
    ]


def defined(statement: ast.stmt, known: Mapping[str, Value]) -> dict[str, Value]:
    """The constants that a statement defines; its sums may use `known` ones."""
    names = [each.id for each in targets(statement) if isinstance(each, ast.Name)]
    if not isinstance(statement, ast.Assign) or not all(map(_CAPITALS.fullmatch, names)):
        return {}
    value = statement.value
    found: list[Value | None]
    if not isinstance(statement.targets[0], ast.Tuple):
        if isinstance(value, ast.Call) and ast.unparse(value.func) == "const":
            found = [ast.literal_eval(value.args[0])]
        else:
            found = [_number(value, known)] * len(names)
    elif isinstance(value, ast.Tuple):
        found = [_number(element, known) for element in value.elts]
    elif isinstance(value, ast.Call) and ast.unparse(value.func) == "range":
        given = [_number(each, known) for each in value.args]
        bounds = [each for each in given if isinstance(each, int)]
        found = [*range(*bounds)] if len(bounds) == len(given) else []
    else:
        return {}
    numbers = [each for each in found if each is not None]
    return dict(zip(names, numbers, strict=True)) if len(numbers) == len(names) else {}


def _number(node: ast.expr, known: Mapping[str, Value]) -> int | None:
    parts = list(ast.walk(node))
    names = {part.id for part in parts if isinstance(part, ast.Name)}
    if not all(isinstance(part, _SUM) for part in parts) or not names <= known.keys():
        return None
    code = compile(ast.Expression(node), "constant", "eval")
    value = eval(code, {"__builtins__": {}}, dict(known))
    return value if type(value) is int else None


class Numbers:
    """The constants of modules, by import name ("slotmq/broker.py")."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._trees = {name: ast.parse(text, name) for name, text in texts.items()}
        self._texts = texts
        self._known: dict[str, dict[str, Value]] = {}

    def known(self, module: str) -> dict[str, Value]:
        """The constants that a module defines or imports."""
        if module not in self._known:
            found = self._known[module] = {}
            for statement in self._trees[module].body if module in self._trees else ():
                found |= self.imported(statement) | defined(statement, found)
        return self._known[module]

    def imported(self, statement: ast.stmt) -> dict[str, Value]:
        """The constants that a statement imports from the package."""
        if not isinstance(statement, ast.ImportFrom) or not statement.module:
            return {}
        theirs = self.known(statement.module.replace(".", "/") + ".py")
        names = [alias.name for alias in statement.names]
        return {name: theirs[name] for name in names if name in theirs}

    def put_in(self, module: str) -> str:
        """The module's text with const() in place of its imports, each line where it was."""
        changes: list[tuple[ast.AST, str]] = []  # what replaces a part of the text
        private: dict[str, str] = {}
        for statement in self._trees[module].body:
            found = self.imported(statement)
            if isinstance(statement, ast.ImportFrom) and found:
                private |= {name: f"_{name.lstrip('_')}" for name in found}
                rest = [ast.unparse(each) for each in statement.names if each.name not in found]
                lines = [f"from {statement.module} import {', '.join(rest)}"] if rest else []
                lines += [f"{private[name]} = const({value!r})" for name, value in found.items()]
                changes.append((statement, "; ".join(lines)))
            elif own := defined(statement, self.known(module)):
                lines = [f"{name} = const({value!r})" for name, value in own.items()]
                changes.append((statement, "; ".join(lines)))
        changed = {node for statement, _ in changes for node in ast.walk(statement)}
        changes += [
            (node, private[node.id])
            for node in ast.walk(self._trees[module])
            if isinstance(node, ast.Name) and node.id in private and node not in changed
        ]
        return _replaced(self._texts[module], changes)


def _replaced(text: str, changes: list[tuple[ast.AST, str]]) -> str:
    content = text.encode()
    starts = [0, *(found.end() for found in re.finditer(b"\n", content))]
    for node, new in sorted(changes, key=lambda each: _place(each[0]), reverse=True):
        line, column, last, end = _place(node)
        begin, behind = starts[line - 1] + column, starts[last - 1] + end
        content = content[:begin] + new.encode() + b"\n" * (last - line) + content[behind:]
    return content.decode()


def _place(node: ast.AST) -> tuple[int, int, int, int]:
    assert isinstance(node, ast.stmt | ast.expr)
    return node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0
