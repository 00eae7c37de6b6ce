"""Native code is only in lib/slotmq/fast/*_viper.py, and both runtimes import the same names."""

import ast
from collections.abc import Iterator

from .source import LIBRARY, Finding, Source

_DECORATORS = {"viper", "native", "asm_thumb", "asm_xtensa", "asm_rv32"}
_POINTERS = {"ptr", "ptr8", "ptr16", "ptr32"}
_ON_BOARDS = ("lib/", "boards/", "firmware/")
_NATIVE = "_viper"


def check(sources: list[Source]) -> Iterator[Finding]:
    """Native code in other files, and names that only one runtime imports."""
    for source in sources:
        if source.path.startswith(_ON_BOARDS) and not _may_be_native(source):
            for name in sorted(set(_native_names(source.tree))):
                what = "viper code belongs in fast/*_viper.py"
                yield Finding("viper", f"{source.path}:{name}", what)
        if source.is_library:
            yield from _check_branches(source)


def _may_be_native(source: Source) -> bool:
    return source.path.startswith(f"{LIBRARY}fast/") and source.module.endswith(_NATIVE)


def _native_names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in _DECORATORS:
            yield node.attr
        elif isinstance(node, ast.Name) and node.id in _POINTERS | _DECORATORS:
            yield node.id


def _check_branches(runtime: Source) -> Iterator[Finding]:
    """Names that only one branch of `if MICROPYTHON` imports, where both do nothing else."""
    for node in filter(_chooses, runtime.tree.body):
        assert isinstance(node, ast.If)
        odd = _names(node.body) ^ _names(node.orelse)
        for name in sorted(odd):
            yield Finding("viper", f"{runtime.path}:{name}", "only one runtime imports it")


def _chooses(node: ast.stmt) -> bool:
    if not isinstance(node, ast.If) or "MICROPYTHON" not in ast.unparse(node.test):
        return False
    both = [*node.body, *node.orelse]
    return bool(node.orelse) and all(isinstance(each, ast.ImportFrom) for each in both)


def _names(body: list[ast.stmt]) -> set[str]:
    froms = [node for node in body if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name for node in froms for alias in node.names}
