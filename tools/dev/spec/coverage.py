"""Statements against tests: what is named, what is not, and what is wrong with that."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from .statements import Statement

MARKER = "spec"
FIRST_VERSION = "3.1.1"  # which a marker means that names no version

Tests = dict[str, list[str]]  # the names of the tests, by statement


class Collector:
    """A pytest plugin that notes which statements each collected test names."""

    def __init__(self) -> None:
        self.tests: dict[str, Tests] = {}  # by version

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            for marker in item.iter_markers(MARKER):
                self._note(item, marker)

    def _note(self, item: pytest.Item, marker: pytest.Mark) -> None:
        tests = self.tests.setdefault(marker.kwargs.get("of", FIRST_VERSION), {})
        test = item.nodeid.partition("[")[0].rpartition("/")[2]
        for name in marker.args:
            if test not in tests.setdefault(name, []):
                tests[name].append(test)


def collect(folder: Path) -> dict[str, Tests]:
    """What the tests in a folder name, by version; they are collected, not run."""
    collector = Collector()
    options = ["--collect-only", "-p", "no:terminal", "-o", "addopts=--strict-markers"]
    status = pytest.main([*options, str(folder)], plugins=[collector])
    if status != pytest.ExitCode.OK:
        raise RuntimeError(f"the tests in {folder} cannot be collected; run pytest to see why")
    return collector.tests


@dataclass(frozen=True)
class Coverage:
    """One version's statements, the tests that name them, and the reasons why none does."""

    version: str
    statements: Mapping[str, Statement]
    reasons: Mapping[str, str]
    tests: Mapping[str, list[str]]

    def faults(self) -> Iterator[str]:
        """What is wrong; nothing if every statement is accounted for."""
        for name, tests in self.tests.items():
            if name not in self.statements:
                yield f"{name}: no such statement, but {tests[0]} names it"
        for name in self.reasons:
            if name not in self.statements:
                yield f"{name}: no such statement, but a reason not to test it"
            elif name in self.tests:
                yield f"{name}: a reason not to test it, but {self.tests[name][0]} does"
        for name in self._bound():
            if name not in self.tests and name not in self.reasons:
                yield f"{name}: no test and no reason: {self.statements[name].text}"

    def table(self) -> Iterator[str]:
        """Each statement that binds a server, over the tests that name it or the reason."""
        for name in self._bound():
            yield f"{name}  {self.statements[name].text}"
            yield from (f"    {test}" for test in self.tests.get(name, ()))
            if name in self.reasons:
                yield f"    not tested: {self.reasons[name]}"

    def count(self) -> str:
        bound = self._bound()
        named = sum(name in self.tests for name in bound)
        return (
            f"MQTT {self.version}: {len(bound)} statements bind a server,"
            f" {named} have tests, {len(self.reasons)} a reason why not"
        )

    def _bound(self) -> list[str]:
        return [name for name, found in self.statements.items() if found.binds_a_server]
