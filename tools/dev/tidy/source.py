"""The files that are looked at, and what a rule says of one."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

FOLDERS = ("lib", "boards", "firmware", "examples", "tools", "host_tests")
LIBRARY = "lib/slotmq/"
_SUFFIXES = {".py", ".js", ".json", ".tsv", ".txt", ".sh", ".toml", ".conf"}
_NOT_OURS = {"__pycache__", "node_modules"}


@dataclass(frozen=True)
class Finding:
    """One place where a rule does not hold."""

    rule: str
    place: str  # a path, with ":name" behind it where it is about a part of the file
    what: str
    size: int = 0  # lines, for the rules that have a maximum

    def __str__(self) -> str:
        return f"{self.place}: {self.what} ({self.rule})"


@dataclass(frozen=True)
class Source:
    """A file: its path from the root of the repository, with slashes, and its text."""

    path: str
    text: str

    @property
    def name(self) -> str:
        """Its name without the folder."""
        return self.path.rpartition("/")[2]

    @property
    def module(self) -> str:
        """Its name without the folder and the ending."""
        return self.name.partition(".")[0]

    @property
    def lines(self) -> int:
        return self.text.count("\n")

    @property
    def is_library(self) -> bool:
        return self.path.startswith(LIBRARY)

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.path)


def read(root: Path) -> list[Source]:
    """Every file of the folders that hold code, in the order of their paths."""
    return [
        Source(path.relative_to(root).as_posix(), path.read_text())
        for folder in FOLDERS
        for path in sorted((root / folder).rglob("*"))
        if path.suffix in _SUFFIXES and not _NOT_OURS.intersection(path.parts)
    ]


def python(sources: list[Source]) -> list[Source]:
    """Those of them that are Python."""
    return [source for source in sources if source.path.endswith(".py")]


def functions(source: Source) -> Iterator[tuple[str, int]]:
    """Every function of a file, as Class.method, and how many lines it has."""
    todo: list[tuple[str, ast.AST]] = [("", source.tree)]
    while todo:
        prefix, parent = todo.pop()
        for node in ast.iter_child_nodes(parent):
            inner = prefix
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inner = f"{prefix}{node.name}."
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield prefix + node.name, (node.end_lineno or node.lineno) - node.lineno + 1
            todo.append((inner, node))
