"""The files that are looked at, and what a rule says of one."""

import ast
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

FOLDERS = ("lib", "boards", "firmware", "examples", "tools", "host_tests")
LIBRARY = "lib/slotmq/"


@dataclass(frozen=True)
class Finding:
    """One place where a rule does not hold."""

    rule: str
    place: str  # a path, with ":name" behind it where it is about a part of the file
    what: str

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
    def is_library(self) -> bool:
        return self.path.startswith(LIBRARY)

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.path)


def read(root: Path) -> list[Source]:
    """Every Python file of the folders that hold code, in the order of their paths."""
    return [
        Source(path.relative_to(root).as_posix(), path.read_text())
        for folder in FOLDERS
        for path in sorted((root / folder).rglob("*.py"))
    ]
