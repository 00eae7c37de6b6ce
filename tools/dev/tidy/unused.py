"""No file that nobody needs: each is reached from what a user or a test starts.

From the roots (Makefile, pyproject.toml, .ci, documents, and the tests that pytest
collects) one gets to a file by its import, or by its name in the text of another.
"""

import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

from .source import Finding, Source

_ROOTS = ("Makefile", "pyproject.toml", "README.md", ".ci/run", "lib/DESIGN.md")
_STARTED = ("host_tests/*test_*.py", "host_tests/*conftest.py", "firmware/*main.py")
# Found by their place in the folder of a board.
_BOARDS = tuple(
    f"boards/*/{name}" for name in ("board.json", "limits.py", "manifest.py", "region.py")
)
# Found by a pattern, in the folder of what looks for them.
_BY_PLACE = (
    *_BOARDS,
    "tools/dev/spec/mqtt-*.tsv",
    "*/__init__.py",
    "host_tests/golden/*.json",
    "host_tests/golden/*/*.json",
)
# Read by tidy, see its own first lines.
_DICTIONARY = "lib/slotmq/protocol/packet.py"
_PACKAGES = (("lib/slotmq", "slotmq"), ("tools", "slotmq_tools"), ("boards", "slotmq_boards"))
_WORD = re.compile(r"[\w.-]+")


def check(sources: list[Source], root: Path) -> Iterator[Finding]:
    """Every file that cannot be reached."""
    texts = [(root / name).read_text() for name in _ROOTS if (root / name).is_file()]
    texts += [page.read_text() for page in sorted((root / "docs").glob("*.md"))]
    waiting = {source.path: source for source in sources}
    reached = [waiting.pop(path) for path in list(waiting) if _is_started(path)]
    texts += [source.text for source in reached]
    while texts:
        words = set(_words(texts.pop()))
        for path in [path for path in waiting if words & _names(path)]:
            texts.append(waiting.pop(path).text)
    for path in waiting:
        yield Finding("unused", path, "nothing that runs leads to it")


def _is_started(path: str) -> bool:
    return path == _DICTIONARY or any(
        fnmatch(path, pattern) for pattern in (*_STARTED, *_BY_PLACE)
    )


def _words(text: str) -> Iterator[str]:
    """File names, modules, and the last parts of dotted names."""
    for found in _WORD.findall(text):
        word = found.strip(".")
        yield word
        yield word.rpartition(".")[2]


def _names(path: str) -> set[str]:
    """What others call this file."""
    for folder, package in _PACKAGES:
        if path.startswith(f"{folder}/"):
            path = package + path.removeprefix(folder)
    stem, _, suffix = path.rpartition(".")
    parts = stem.split("/")
    name = f"{parts[-1]}.{suffix}"
    if suffix != "py":
        return {name}
    if parts[-1] == "__main__":
        return {".".join(parts[:-1])}
    return {name, parts[-1], ".".join(parts)}
