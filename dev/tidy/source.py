"""The checked files, and the findings."""

import ast
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

FOLDERS = ("lib", "boards", "firmware", "examples", "tools", "dev", "telemetry", "host_tests")
LIBRARY = "lib/slotmq/"


@dataclass(frozen=True)
class Finding:
    """A violation of a rule."""

    rule: str
    place: str  # path, or path:name
    what: str

    def __str__(self) -> str:
        return f"{self.place}: {self.what} ({self.rule})"


@dataclass(frozen=True)
class Source:
    """A file: its path from the root of the repository, and its text."""

    path: str
    text: str

    @property
    def name(self) -> str:
        """The file name."""
        return self.path.rpartition("/")[2]

    @property
    def module(self) -> str:
        """The file name without extension."""
        return self.name.partition(".")[0]

    @property
    def is_library(self) -> bool:
        return self.path.startswith(LIBRARY)

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.path)


def read(root: Path) -> list[Source]:
    """All Python files of the folders with code, by path."""
    return [
        Source(path.relative_to(root).as_posix(), path.read_text())
        for folder in FOLDERS
        for path in sorted((root / folder).rglob("*.py"))
    ]
