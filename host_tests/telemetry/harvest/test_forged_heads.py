"""`slotmq harvest --broker` with heads that are wrong or forged: no segment counts as sealed that
the board is still writing, and other boards are not delayed.
"""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from host_tests.broker.wire.process import BrokerProcess
from slotmq_tools.harvest import network

from .conftest import A, Attach, B, Folder, identities, recorder
from .recording import Recorder
from .test_usb import flash, written
from .test_usb import harvest as by_cable
from .test_wrong_answers import forged

__all__ = ["by_cable", "flash"]  # fixtures
Harvest = Callable[..., Result]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "_AGAIN_S", 0.3)


def told(field: BrokerProcess, one: Recorder, **otherwise: int) -> None:
    """Somebody publishes a head of this board."""
    head = json.dumps({**one.state(), **otherwise}).encode()
    forged(field, f"$SLOTMQ/record/{one.name}/head", head)


@pytest.mark.parametrize("too_many", [1, 7])
def test_a_head_with_a_segment_too_many_seals_none(
    attach: Attach, harvest: Harvest, folder: Folder, field: BrokerProcess, too_many: int
) -> None:
    one = recorder(A, 200)
    boards, newest = attach(one), one.newest
    told(field, one, segment=newest + too_many)
    said = harvest().output
    assert f"its newest segment is {newest}, its head says {newest + too_many}" in said
    growing = [[A, 1, newest, len(one.segments[newest])]]
    assert folder.lines()[0]["growing"] == growing
    assert "nothing new" in harvest().output and not list((folder.path / "partial").iterdir())
    for number in range(200):
        one.message("room/1", b"later %d" % number)
    boards.published()
    harvest()
    assert one.newest > newest and folder.identities() == identities(one)


def test_the_cable_fetches_before_deleting_what_a_wrong_head_left_out(
    attach: Attach, harvest: Harvest, by_cable: Harvest, flash: Path, folder: Folder,
    field: BrokerProcess,
) -> None:  # fmt: skip
    one = recorder(A, 20)
    attach(one)
    told(field, one, segment=one.newest + 1)
    harvest()
    for _ in range(30):
        one.message("room/1", b"later")
    one.start()
    written(one, flash)
    by_cable("--delete")
    assert folder.identities() == identities(one)
    assert [path.name for path in flash.iterdir()] == [f"{one.newest:08x}.seg"]


def test_a_head_without_existing_segments_is_named(
    attach: Attach, harvest: Harvest, folder: Folder, field: BrokerProcess
) -> None:
    one = recorder(A, 20)
    boards = attach(one)
    told(field, one, first=5, segment=9)
    said = harvest(status=1).output
    assert f"board {A}: its head" in said and "segments 5 to 9" in said
    boards.published()
    harvest()
    assert folder.identities() == identities(one)


def test_an_unreadable_newest_segment_seals_none(
    attach: Attach, harvest: Harvest, folder: Folder
) -> None:
    """Power failed when the board had begun it; what seals those before is its next start."""
    one = recorder(A, 20)
    one.start()
    one.segments[one.newest] = one.segments[one.newest][:9]
    boards = attach(one)
    assert "segment 1: cut header" in harvest().output
    assert [number for _, _, number, _ in folder.lines()[0]["growing"]] == [0]
    one.start()
    boards.published()
    harvest()
    assert [number for _, _, number, _ in folder.lines()[1]["growing"]] == [2]
    assert [number for _, _, number, *_ in folder.lines()[1]["segments"]] == [0, 2]


def test_a_head_of_a_million_segments_blocks_no_other_board(
    attach: Attach, harvest: Harvest, folder: Folder, field: BrokerProcess
) -> None:
    one, other = recorder(A, 20), recorder(B, 20)
    boards = attach(one, other)
    told(field, one, segment=(1 << 20) - 1)
    said = harvest(status=1).output
    assert said.count(f"board {A}: wrong head") == said.count("1048512 to 1048575") == 1
    assert len(boards.requests) < 80 and folder.identities() == identities(other)
    boards.published()
    harvest()
    assert folder.identities() == identities(one, other)


def test_a_head_that_begins_a_million_segments_too_early_costs_few_requests(
    attach: Attach, harvest: Harvest, folder: Folder, field: BrokerProcess
) -> None:
    one = recorder(A, 600, newest=(1 << 20) - 5)
    oldest = min(one.segments)
    assert len(one.segments) < 6
    boards = attach(one)
    told(field, one, first=6)
    count = oldest - 6
    for _ in range(2):
        boards.requests.clear()
        said = harvest().output
        names = f"board {A}: its head names segments 6 to {oldest - 1}"
        assert f"{names}, of which {count:,} do not exist" in said
        assert len(boards.requests) < 130
    assert folder.identities() == identities(one)
