"""A number of lib/slotmq that several files use has one name, in constants.py; what a constant is,
tools/pack/numbers.py says."""

from collections import defaultdict
from collections.abc import Iterator

from slotmq_tools.pack import numbers

from .source import LIBRARY, Finding, Source

HOME = f"{LIBRARY}constants.py"


def check(sources: list[Source]) -> Iterator[Finding]:
    """Names that constants.py has too, and copies: the same name and number in two files."""
    found = {source.path: constants(source) for source in sources if source.is_library}
    home = found.pop(HOME, {})
    places: dict[tuple[str, numbers.Value], list[str]] = defaultdict(list)
    for path, each in found.items():
        for name, value in each.items():
            if (bare := name.lstrip("_")) in home:
                yield Finding("const", f"{path}:{name}", f"import {bare} from {HOME}")
            places[bare, value].append(path)
    for (name, _), paths in places.items():
        if len(paths) > 1:
            yield Finding(
                "const", f"{paths[1]}:{name}", f"{paths[0]} has it too: move it to {HOME}"
            )


def constants(source: Source) -> dict[str, numbers.Value]:
    """The constants that a file defines."""
    known: dict[str, numbers.Value] = {}
    for statement in source.tree.body:
        known |= numbers.defined(statement, known)
    return known
