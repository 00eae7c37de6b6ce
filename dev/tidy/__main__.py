"""Checks the repository's own rules, which ruff and mypy do not know.

    python -m slotmq_dev.tidy

The exit status is 1 if a rule is violated.
"""

import sys
from pathlib import Path

from . import columns, consts, imports, viper
from .source import read

ROOT = Path(__file__).resolve().parents[2]


def main(root: Path = ROOT) -> int:
    """Print the findings; the exit status."""
    sources = read(root)
    found = [
        finding for rule in (imports, viper, consts, columns) for finding in rule.check(sources)
    ]
    for finding in found:
        print(finding, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
