"""The exceptions there are: known.tsv, which may only get shorter.

A row has a rule, a place, and for lengths how long it is. A place may not grow
past its row, and a row that is too high or not needed is a finding itself.
"""

from collections.abc import Iterator
from pathlib import Path

from .source import Finding

FILE = Path(__file__).with_name("known.tsv")


def apply(findings: list[Finding], text: str) -> Iterator[Finding]:
    """What remains of the findings, and what is wrong with the rows."""
    known = dict(_rows(text))
    for finding in findings:
        size = known.pop((finding.rule, finding.place), None)
        if size is None or finding.size > size:
            yield finding
        elif finding.size < size:
            yield _stale(finding.rule, finding.place, f"it is {finding.size} now, not {size}")
    for rule, place in known:
        yield _stale(rule, place, "it holds now, take the row out")


def _rows(text: str) -> Iterator[tuple[tuple[str, str], int]]:
    for line in text.splitlines():
        if line and not line.startswith("#"):
            rule, place, size = line.split("\t")
            yield (rule, place), int(size)


def _stale(rule: str, place: str, what: str) -> Finding:
    return Finding("known", f"tools/dev/tidy/{FILE.name}", f"{rule} {place}: {what}")
