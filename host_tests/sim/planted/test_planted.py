"""The simulator finds each planted fault within a fixed number of seeds."""

import os

import pytest

from .. import campaign, planted
from . import FAULTS, faults_bridge, faults_journal
from .faults import Fault


@pytest.mark.timeout(400)  # up to 500 seeds, on a slow machine
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_it_is_found(fault: Fault) -> None:
    seeds, failure = planted.find(fault)
    assert seeds, "not found"
    assert failure


def test_the_documents_have_their_number() -> None:
    text = " ".join((planted.LIB.parents[1] / "docs" / "reliability.md").read_text().split())
    late = {fault.first for fault in FAULTS if fault.first}
    assert late == {500, 600, 900, 1130}
    assert f"are {len(FAULTS)} small edits" in text
    assert f"{len(faults_journal.FAULTS)} of them" in text
    assert f"The last {len(faults_bridge.FAULTS)}" in text
    assert f"within {planted.MOST_OF_BRIDGE}" in text
    assert f"must be found within {planted.MOST} seeds" in text
    assert f"of {sum(fault.first > 0 for fault in FAULTS)} faults later" in text


def test_a_failure_is_shrunk_and_replayed(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    (fault,) = [fault for fault in FAULTS if fault.name == "DUP is missing"]
    seed = planted.find(fault)[0] - 1
    planted.plant(fault, tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(campaign, "ROOT", tmp_path)
    (tmp_path / "host_tests").symlink_to(planted.LIB.parents[1] / "host_tests")
    (failed,) = campaign.run("cpython", seed, 1)
    smaller = campaign.shrink("cpython", failed)
    assert failed.failure and smaller.failure
    assert smaller.steps <= failed.steps
    assert 0 < len(smaller.only) < 7
    assert smaller.replay.startswith(f"python -m host_tests.sim --first {seed} --seeds 1 --steps ")
