"""The simulator finds functions that answer wrongly, each within a number of seeds.

`slotmq_dev.mutants` plants single wrong operators and statements at random, as `make nightly`
does. A check that is never made is none of these.
"""

import os
from pathlib import Path

import pytest

from slotmq_dev.mutants import LIB, Trial, simulator, with_body

from . import campaign

SEEDS = 150
# What is wrong, the file, the function, and its body
FAULTS = (
    ("anybody may publish", "access/acl.py", "may_publish", "return True"),
    ("anybody may read what is stored", "access/acl.py", "may_read", "return True"),
    ("a route has receivers that may not read it", "access/acl.py", "reads", "return True"),
    ("anybody may subscribe", "access/acl.py", "may_subscribe", "return True"),
    ("new rules leave what is queued", "access/recheck_sessions.py", "every_session", "pass"),
    ("another user resumes a session", "protocol/open_session.py", "_is_anothers", "return False"),
    ("lasting sessions take every slot", "protocol/open_session.py", "_may_stay", "return True"),
    ("a clean session keeps its state", "delivery/lifecycle.py", "discard_state", "pass"),
    ("no will is dropped", "delivery/lifecycle.py", "drop_will", "pass"),
    ("a session exceeds its quotas", "delivery/quota.py", "bound", "return 0"),
    ("a duplicate is delivered", "tables/sessions.py", "find_received", "return -1"),
    ("a received id is never forgotten", "tables/sessions.py", "remove_received", "pass"),
    ("a route outlives its subscription", "tables/subscriptions.py", "forget_routes", "pass"),
    ("No Local is ignored", "v5/routing.py", "_is_local", "return False"),
    ("Receive Maximum is ignored", "v5/routing.py", "_under_way", "return False"),
    ("a route is remembered though an option matters", "v5/extension.py", "is_odd", "return 0"),
    ("a will's delay is ignored", "v5/extension.py", "keeps_will", "return False"),
    ("acknowledged before it is stored", "journal/writer.py", "commit", "return True"),
    ("a torn record is accepted", "journal/reader.py", "_is_whole", "return True"),
    ("received ids are not stored", "tables/sessions.py", "_touch_ids", "pass"),
    ("a file is not synced", "journal/medium_file.py", "sync", "pass"),
    ("a page is not programmed", "journal/medium_flash.py", "sync", "pass"),
)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault[0])
def test_it_is_found(fault: tuple[str, str, str, str], tmp_path: Path) -> None:
    trial = Trial(simulator(SEEDS), tmp_path)
    assert not trial.passes_with(fault[1], with_body(*fault[1:]))


def test_without_a_fault_nothing_is_found(tmp_path: Path) -> None:
    assert Trial(simulator(5), tmp_path).passes()


@pytest.mark.timeout(600)
def test_a_failure_is_shrunk_and_replayed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    trial = Trial([], tmp_path)
    (trial.package / "tables/sessions.py").write_text(
        with_body("tables/sessions.py", "remove_received", "pass")
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(campaign, "ROOT", tmp_path)
    (tmp_path / "host_tests").symlink_to(LIB.parents[1] / "host_tests")
    failed = next(outcome for outcome in campaign.run("cpython", 0, SEEDS) if outcome.failure)
    smaller = campaign.shrink("cpython", failed)
    assert smaller.failure
    assert smaller.steps <= failed.steps
    assert 0 < len(smaller.only) < 7
    first = f"python -m host_tests.sim --first {failed.seed} --seeds 1 --steps "
    assert smaller.replay.startswith(first)
