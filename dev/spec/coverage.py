"""Compares statements with the tests that name them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from .statements import Statement

MARKER = "spec"
FIRST_VERSION = "3.1.1"  # of markers without a version

Tests = dict[str, list[str]]  # names of tests, by statement


class Collector:
    """A pytest plugin that collects the statements that each test names."""

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
    """The tests in a folder by statement, for each version; they are not run."""
    collector = Collector()
    options = ["--collect-only", "-p", "no:terminal", "-o", "addopts=--strict-markers"]
    # The plugin's package, slotmq_tools, is this program's own.
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    status = pytest.main([*options, str(folder)], plugins=[collector])
    if status != pytest.ExitCode.OK:
        raise RuntimeError(f"the tests in {folder} cannot be collected; run pytest to see why")
    return collector.tests


@dataclass(frozen=True)
class Coverage:
    """The statements of a version, and their tests."""

    version: str
    statements: Mapping[str, Statement]
    tests: Mapping[str, list[str]]

    def faults(self) -> Iterator[str]:
        """The errors; none if each statement has either a test or a reason."""
        for name, tests in self.tests.items():
            if name not in self.statements:
                yield f"{name}: no such statement, but {tests[0]} names it"
        for name, found in self._for_servers().items():
            if found.reason and name in self.tests:
                yield f"{name}: a reason not to test it, but {self.tests[name][0]} does"
            elif not found.reason and name not in self.tests:
                yield f"{name}: no test and no reason: {found.text}"

    def table(self) -> Iterator[str]:
        """Each statement that binds a server, with its tests or the reason."""
        for name, found in self._for_servers().items():
            yield f"{name}  {found.text}"
            yield from (f"    {test}" for test in self.tests.get(name, ()))
            if found.reason:
                yield f"    not tested: {found.reason}"

    def count(self) -> str:
        statements = self._for_servers()
        named = sum(name in self.tests for name in statements)
        return (
            f"MQTT {self.version}: {len(statements)} statements bind a server, {named} have tests,"
            f" {sum(bool(each.reason) for each in statements.values())} a reason why not"
        )

    def _for_servers(self) -> dict[str, Statement]:
        return {name: found for name, found in self.statements.items() if found.binds_a_server}
