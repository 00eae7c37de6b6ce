"""What deploy does with a board that has slotmq in its firmware, and with one that had it."""

from contextlib import suppress

import pytest

from host_tests.host.deploy.fake_repl import BOARD, HEADLINE, FakeRepl, deployed, probe
from slotmq import __version__
from slotmq_tools import boards
from slotmq_tools.deploy import backup, copying, steps
from slotmq_tools.errors import ToolError

SAID = [HEADLINE, "wifi home: up, 192.168.1.7"]
ALL = {"slotmq": __version__, "slotmq_run": ""}
BESIDE_CODE = {"/main.py", "/network.json", "/slotmq.conf"}


def with_firmware(**frozen: str) -> FakeRepl:
    board = FakeRepl(SAID)
    board.frozen = frozen
    return board


def folders(board: FakeRepl) -> set[str]:
    """What lies in /lib of ours."""
    return {path.split("/")[2] for path in board.files if path.startswith("/lib/slotmq")}


@pytest.mark.usefixtures("tried")
def test_preset_configuration_and_main_are_written_and_no_code() -> None:
    board = with_firmware(**ALL)
    said = deployed(board)
    assert said[1] == "frozen in its firmware, and not copied: slotmq, slotmq_run"
    assert folders(board) == {"slotmq_boards"}
    assert board.files.keys() > BESIDE_CODE


@pytest.mark.usefixtures("tried")
def test_the_firmwares_part_alone() -> None:
    board = with_firmware(slotmq=__version__)
    deployed(board)
    assert folders(board) == {"slotmq_boards", "slotmq_run"}


@pytest.mark.usefixtures("tried")
def test_code_that_nobody_would_run_any_more_goes() -> None:
    board = FakeRepl(SAID)
    deployed(board)
    assert folders(board) == {"slotmq", "slotmq_boards", "slotmq_run"}
    board.frozen = ALL
    board.files["/lib/mine.py"] = b"the user's"
    deployed(board)
    assert folders(board) == {"slotmq_boards"}
    assert "/lib/mine.py" in board.files


@pytest.mark.usefixtures("tried")
def test_back_on_stock_firmware_it_gets_the_code() -> None:
    board = with_firmware(**ALL)
    deployed(board)
    board.frozen = {}
    deployed(board)
    assert folders(board) == {"slotmq", "slotmq_boards", "slotmq_run"}


def test_a_firmware_of_another_version_is_refused() -> None:
    board = with_firmware(slotmq="0.0.9", slotmq_run="")
    with pytest.raises(ToolError, match=r"has slotmq 0\.0\.9 frozen.*build the firmware anew"):
        deployed(board)
    assert board.written == []


@pytest.mark.usefixtures("tried")
@pytest.mark.parametrize(("before", "after"), [({}, ALL), (ALL, {}), (ALL, ALL)])
def test_one_that_was_cut_off_is_told_of_whatever_firmware_comes_next(
    before: dict[str, str], after: dict[str, str]
) -> None:
    board = with_firmware(**before)
    board.steps_left = 2  # the mark, and one file
    with suppress(ToolError):
        deployed(board)
    mark = copying.MARK_FROZEN if before else copying.MARK
    assert board.files[mark] == b"raise ImportError('a deploy of slotmq was interrupted')\n"
    board.frozen = after
    board.steps_left = 10**6
    deployed(board)
    assert not board.files.keys() & set(copying.MARKS)


@pytest.mark.usefixtures("tried")
def test_the_heap_that_code_does_not_take_is_for_tables() -> None:
    facts = boards.load(BOARD)
    deployed_heap, rows = steps.heap_needed(facts, None)
    frozen_heap, same = steps.heap_needed(facts, None, ALL)
    assert rows == same and deployed_heap - frozen_heap > 50_000
    board = with_firmware(**ALL)
    board.probe = probe(heap=frozen_heap)
    assert deployed(board)[-1].endswith("it answered")
    board.frozen = {}
    with pytest.raises(ToolError, match=f"{deployed_heap:,} are needed"):
        deployed(board)


def test_a_mark_is_no_file_of_the_users() -> None:
    assert all(backup._is_ours(path, "") for path in copying.MARKS)
