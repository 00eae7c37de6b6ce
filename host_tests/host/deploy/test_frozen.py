"""deploy to a board with slotmq frozen in its firmware, before and after a change of firmware."""

from contextlib import suppress

import pytest

from host_tests.host.deploy.fake_repl import BOARD, FakeRepl, deployed, probe
from slotmq import __version__
from slotmq_tools import boards
from slotmq_tools.deploy import backup, copying, steps
from slotmq_tools.errors import ToolError

ALL = {"slotmq": __version__, "slotmq_run": ""}
NOT_CODE = {"/main.py", "/network.json", "/slotmq.conf"}


def with_firmware(**frozen: str) -> FakeRepl:
    board = FakeRepl()
    board.frozen = frozen
    return board


def folders(board: FakeRepl) -> set[str]:
    """slotmq's folders in /lib."""
    return {path.split("/")[2] for path in board.files if path.startswith("/lib/slotmq")}


@pytest.mark.usefixtures("tested")
def test_preset_configuration_and_main_are_written_but_no_code() -> None:
    board = with_firmware(**ALL)
    lines = deployed(board)
    assert lines[1].startswith("frozen") and lines[1].endswith(": slotmq, slotmq_run")
    assert folders(board) == {"slotmq_boards"}
    assert board.files.keys() > NOT_CODE


@pytest.mark.usefixtures("tested")
def test_one_frozen_package() -> None:
    board = with_firmware(slotmq=__version__)
    deployed(board)
    assert folders(board) == {"slotmq_boards", "slotmq_run"}


@pytest.mark.usefixtures("tested")
def test_code_that_is_now_frozen_is_removed() -> None:
    board = FakeRepl()
    deployed(board)
    assert folders(board) == {"slotmq", "slotmq_boards", "slotmq_run"}
    board.frozen = ALL
    board.files["/lib/mine.py"] = b"the user's"
    deployed(board)
    assert folders(board) == {"slotmq_boards"}
    assert "/lib/mine.py" in board.files


@pytest.mark.usefixtures("tested")
def test_after_a_return_to_stock_firmware_the_code_is_copied() -> None:
    board = with_firmware(**ALL)
    deployed(board)
    board.frozen = {}
    deployed(board)
    assert folders(board) == {"slotmq", "slotmq_boards", "slotmq_run"}


def test_a_firmware_of_another_version_is_refused() -> None:
    board = with_firmware(slotmq="0.0.9", slotmq_run="")
    with pytest.raises(ToolError, match=r"slotmq 0\.0\.9 frozen"):
        deployed(board)
    assert board.written == []


@pytest.mark.usefixtures("tested")
@pytest.mark.parametrize(("before", "after"), [({}, ALL), (ALL, {}), (ALL, ALL)])
def test_the_mark_of_an_interrupted_deploy_is_removed_with_any_firmware(
    before: dict[str, str], after: dict[str, str]
) -> None:
    board = with_firmware(**before)
    board.steps_left = 2  # the mark and one file
    with suppress(ToolError):
        deployed(board)
    mark = copying.MARK_FROZEN if before else copying.MARK
    with pytest.raises(ImportError, match="interrupted"):
        exec(board.files[mark], {})
    board.frozen = after
    board.steps_left = 10**6
    deployed(board)
    assert not board.files.keys() & set(copying.MARKS)


@pytest.mark.usefixtures("tested")
def test_heap_that_frozen_code_does_not_take_is_free_for_tables() -> None:
    facts = boards.load(BOARD)
    deployed_heap, rows = steps.heap_needed(facts, None)
    frozen_heap, same = steps.heap_needed(facts, None, ALL)
    assert rows == same and deployed_heap - frozen_heap > 50_000
    board = with_firmware(**ALL)
    board.probe = probe(heap=frozen_heap)
    deployed(board)
    board.frozen = {}
    with pytest.raises(ToolError, match=f"{deployed_heap:,} are needed"):
        deployed(board)


def test_a_mark_is_not_part_of_a_backup() -> None:
    assert all(backup.is_code(path, "") for path in copying.MARKS)
