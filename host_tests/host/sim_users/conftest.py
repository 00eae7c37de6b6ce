"""Simulates the text of a scenario."""

from collections.abc import Callable
from pathlib import Path

import pytest

from slotmq_tools.scenario.outcome import Group, Outcome, simulate
from slotmq_tools.scenario.read import read

Simulated = Callable[..., Outcome]


@pytest.fixture
def simulated(tmp_path: Path) -> Simulated:
    """Simulate the scenario of this text."""

    def run(text: str, **overrides: object) -> Outcome:
        file = tmp_path / "scenario.toml"
        file.write_text(text)
        return simulate(read(file, **overrides), lambda percent: None)

    return run


def group(outcome: Outcome, name: str) -> Group:
    """The row of a group."""
    (found,) = (each for each in outcome.groups if each.clients.name == name)
    return found


def table(outcome: Outcome, name: str) -> tuple[int, int, int]:
    """Size, peak and refusals of a table."""
    (found,) = (each for each in outcome.tables if each.name == name)
    return found.size, found.peak, found.refused
