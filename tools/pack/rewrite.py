"""Writes the packed files: the modules of each one after the other, with the new names."""

import ast

from . import numbers
from .names import STANDS_IN, Names, in_class, is_call_of
from .program import INIT, PACKAGE, Constant, Meaning, OurModule, Own, Program, Theirs

# Calls whose first argument names a module, and the module that defines them, in which any
# string may name a module
_LOADS = ("take", "borrow", "forget", "control", "module", "taken.setdefault")
_LOADER = "platform.ondemand"


def write(program: Program) -> dict[str, str]:
    """The sources of the packed files, by import name."""
    names = Names(program)
    texts = {
        f"{PACKAGE}/{file}.py": _file(program, names, file, modules)
        for file, modules in program.files.items()
    }
    return {name: text for name, text in texts.items() if text.strip() or INIT in name}


def _file(program: Program, names: Names, file: str, modules: list[str]) -> str:
    heads: dict[str, None] = {}  # import statements, without duplicates
    body: list[str] = []
    for name in modules:
        writer = _Writer(program, names, file, name)
        for statement in program.modules[name].body:
            if isinstance(statement, ast.Import | ast.ImportFrom):
                heads.update(dict.fromkeys(writer.imports(statement)))
            elif not _is_constant(program, name, statement):
                body.append(_text(ast.fix_missing_locations(writer.visit(statement))))
    return "\n".join([*heads, *body]) + "\n"


def _text(statement: ast.stmt) -> str:
    """ast.unparse() writes `a, b = (x, y)`, for which MicroPython makes a tuple; not so here."""
    bare: dict[str, str] = {}
    for node in ast.walk(statement):
        match node:
            case ast.Assign(targets=[ast.Tuple()], value=ast.Tuple(elts=values)):
                mark = f"_bare_{len(bare)}_"
                bare[mark] = ", ".join(map(ast.unparse, values))
                node.value = ast.Name(mark)
    text = ast.unparse(statement)
    for mark, listed in bare.items():
        text = text.replace(mark, listed)
    return text


def _is_constant(program: Program, module: str, statement: ast.stmt) -> bool:
    names = [each.id for each in numbers.targets(statement) if isinstance(each, ast.Name)]
    found = [program.meaning(module, name) for name in names]
    return bool(found) and all(isinstance(each, Constant) for each in found)


def _is_of_constants(program: Program, module: str) -> bool:
    return all(
        isinstance(statement, ast.ImportFrom) or _is_constant(program, module, statement)
        for statement in program.modules[module].body
    )


class _Writer(ast.NodeTransformer):
    """Renames the names in one module's statements."""

    def __init__(self, program: Program, names: Names, file: str, module: str) -> None:
        self._program = program
        self._names = names
        self._file = file
        self._module = module
        self._means = program.modules[module].means
        nodes = [node for line in program.modules[module].body for node in ast.walk(line)]
        self._used = {node.id for node in nodes if isinstance(node, ast.Name)}
        self._scopes: list[
            dict[str, str | Meaning]
        ] = []  # of the enclosing functions, the innermost last
        self._class: set[str] = set()  # names bound in the enclosing class
        self._class_name = ""

    def imports(self, statement: ast.Import | ast.ImportFrom) -> list[str]:
        """The import statements that replace this one."""
        source = (statement.module or "") if isinstance(statement, ast.ImportFrom) else ""
        if source.split(".")[0] == PACKAGE:
            found = [
                self._import(meaning)
                for name, meaning in self._program.imported(statement)
                if name in self._used or not isinstance(meaning, OurModule)
            ]
            return [line for line in found if line]
        head = f"from {source} " if source else ""
        kept = [alias for alias in statement.names if alias.name != "const"]
        return [f"{head}import {ast.unparse(alias)}" for alias in kept]

    def _import(self, meaning: Meaning) -> str:
        if isinstance(meaning, Own):
            file = self._program.file_of(meaning.module)
            if file == self._file:
                return ""
            source = PACKAGE if file == INIT else f"{PACKAGE}.{file}"
            return f"from {source} import {self._names.definitions[meaning]}"
        if isinstance(meaning, OurModule) and not _is_of_constants(self._program, meaning.name):
            file = self._program.file_of(meaning.name)
            return "" if file == self._file else f"from {PACKAGE} import {file}"
        return ""

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return self._file_name(node) if self._module == _LOADER else node

    def visit_Call(self, node: ast.Call) -> ast.Call:
        if node.args and is_call_of(_LOADS, node):
            node.args[0] = self._file_name(node.args[0])
        self.generic_visit(node)
        return node

    def _file_name(self, node: ast.expr) -> ast.expr:
        # The packed file's name for "protocol.connect"
        if isinstance(node, ast.Constant) and node.value in self._program.modules:
            return ast.Constant(self._program.flat(str(node.value)))
        return node

    # Uses of names

    def _find(self, name: str) -> str | Meaning | None:
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        return self._means.get(name)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if not self._scopes and node.id in self._class:
            return ast.Name(self._names.attributes.get(node.id, node.id), node.ctx)
        found = self._find(node.id)
        if isinstance(found, str):
            return ast.Name(found, node.ctx)
        if isinstance(found, Constant):
            return ast.Constant(found.value)
        if isinstance(found, Own):
            return ast.Name(self._names.definitions[found], node.ctx)
        if isinstance(found, OurModule):
            raise ValueError(f"line {node.lineno}: the module {node.id} is used as a value")
        return ast.Name(found.name if isinstance(found, Theirs) else node.id, node.ctx)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if isinstance(node.value, ast.Name):
            found = self._find(node.value.id)
            if isinstance(found, OurModule):
                return self._of_module(found.name, node)
            if isinstance(found, Theirs):
                return ast.Attribute(ast.Name(found.name, ast.Load()), node.attr, node.ctx)
        if node.attr in self._program.constants:
            raise ValueError(f"line {node.lineno}: {node.attr} is a constant, no attribute")
        value = self.visit(node.value)
        return ast.Attribute(value, self._names.attributes.get(node.attr, node.attr), node.ctx)

    def _of_module(self, module: str, node: ast.Attribute) -> ast.expr:
        meaning = self._program.meaning(module, node.attr)
        if isinstance(meaning, Constant):
            return ast.Constant(meaning.value)
        if not isinstance(meaning, Own):
            raise ValueError(f"line {node.lineno}: {module} does not define {node.attr}")
        name = self._names.definitions[meaning]
        file = self._program.file_of(meaning.module)
        if file == self._file:
            return ast.Name(name, node.ctx)
        if any(isinstance(scope.get(file), str) for scope in self._scopes):
            raise ValueError(f"line {node.lineno}: {file}, the file of {module}, is a local name")
        return ast.Attribute(ast.Name(file, ast.Load()), name, node.ctx)

    # Definitions

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        own = self._find(node.name)
        assert isinstance(own, Own)
        node.name = self._names.definitions[own]
        node.bases = [self.visit(base) for base in node.bases]
        self._class, self._class_name = set(in_class(node)), own.name
        node.body = [self.visit(statement) for statement in node.body]
        self._class = set()
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.decorator_list = [self.visit(each) for each in node.decorator_list]
        node.args.defaults = [self.visit(each) for each in node.args.defaults]
        scope = self._scope(node, node.args, self._keeps_arguments(node.name))
        node.name = self._renamed(node.name)
        self._scopes.append(scope)
        node.body = [line for each in node.body for line in self._statement(each)]
        self._scopes.pop()
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self.visit_FunctionDef(node)  # type: ignore[arg-type]

    def _keeps_arguments(self, function: str) -> bool:
        if self._scopes:
            return True  # an inner function: short names could hide those of the outer one
        if self._class:
            return self._class_name in self._names.exported or function in STANDS_IN
        own = self._find(function)
        return isinstance(own, Own) and self._names.is_known(self._program, own)

    def _renamed(self, name: str) -> str:
        if not self._scopes and name in self._class:
            return self._names.attributes.get(name, name)
        found = self._find(name)
        return self._names.definitions[found] if isinstance(found, Own) else name

    def _statement(self, node: ast.stmt) -> list[ast.stmt]:
        if isinstance(node, ast.Import | ast.ImportFrom):
            return [ast.parse(line).body[0] for line in self.imports(node)]
        changed = self.visit(node)
        return changed if isinstance(changed, list) else [changed]

    def visit_Import(self, node: ast.Import) -> list[ast.stmt]:
        return self._statement(node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> list[ast.stmt]:
        return self._statement(node)

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        self._scopes.append(self._scope(node, node.args, keep=True))
        node.body = self.visit(node.body)
        self._scopes.pop()
        return node

    def visit_Global(self, node: ast.Global) -> ast.Global:
        node.names = [self._renamed(name) for name in node.names]
        return node

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        node.name = node.name and self._renamed(node.name)
        return self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> ast.keyword:
        node.value = self.visit(node.value)
        return node

    def _scope(
        self, node: ast.AST, args: ast.arguments, keep: bool = False
    ) -> dict[str, str | Meaning]:
        # The names that the function binds; its arguments are renamed here.
        bound: dict[str, str | Meaning] = {}
        shared: set[str] = set()
        for each in ast.walk(node):
            if isinstance(each, ast.Global):
                shared.update(each.names)
            elif isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                bound[each.id] = each.id
            elif isinstance(each, ast.ExceptHandler) and each.name:
                bound[each.name] = each.name
            elif isinstance(each, ast.ImportFrom):
                bound.update(self._program.imported(each))
        inner = {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}
        short = {} if keep else self._names.arguments(args, set(bound) | inner)
        for each in [*args.args, *(a for a in (args.vararg, args.kwarg) if a)]:
            name = each.arg
            bound[name] = each.arg = short.get(name, name)
        return {name: value for name, value in bound.items() if name not in shared}
