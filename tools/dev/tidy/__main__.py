"""Checks the rules of the repository and prints how large it is.

    python -m slotmq_tools.dev.tidy [--files]

Ends with 1 where a rule does not hold.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from . import columns, consts, imports, known, sizes, unused, viper
from .source import Finding, Source, python, read

ROOT = Path(__file__).resolve().parents[3]


def main(argv: Sequence[str] = tuple(sys.argv[1:]), root: Path = ROOT) -> int:
    """Print the findings and the report; the exit status."""
    sources = read(root)
    for line in sizes.report(python(sources), each="--files" in argv):
        print(line)
    found = list(known.apply(check(sources, root), known.FILE.read_text()))
    for finding in found:
        print(finding, file=sys.stderr)
    return 1 if found else 0


def check(sources: list[Source], root: Path) -> list[Finding]:
    """All findings, whether they are known or not."""
    ours = python(sources)
    found: list[Finding] = []
    for rule in (imports, viper, consts, columns, sizes):
        found += rule.check(ours)
    return [*found, *unused.check(sources, root)]


if __name__ == "__main__":
    sys.exit(main())
