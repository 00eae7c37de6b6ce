"""A deploy that is interrupted at every step; a main.py of the user; flash that is nearly full."""

import hashlib
from contextlib import suppress

import pytest

from host_tests.host.deploy.fake_repl import BOARD, HOME_AGAIN, FakeRepl, deployed, probe
from slotmq_tools import boards
from slotmq_tools.deploy import board_files, copying
from slotmq_tools.deploy.network import Network
from slotmq_tools.errors import ToolError

USERS_MAIN = b"import machine  # my own\n"
CODE = {f"/lib/slotmq/{n}.mpy": b"new %d" % n * 900 for n in range(6)} | {"/main.py": b"new"}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program has the files of CODE."""
    monkeypatch.setattr(board_files, "code", lambda *_: dict(CODE))
    mains = [hashlib.sha256(text).hexdigest() for text in (b"new", b"old", b"old" * 4000)]
    monkeypatch.setattr(board_files, "known_mains", lambda: tuple(mains))


def old_board() -> FakeRepl:
    """With an older version, which has a file that this one does not have."""
    board = FakeRepl()
    deployed(board)
    for path in (*list(CODE)[:4], "/lib/slotmq/gone.mpy"):
        board.files[path] = b"old"
    board.files["/lib/mine.py"] = b"not slotmq's"
    return board


@pytest.mark.usefixtures("small", "tested")
def test_an_interrupted_upgrade_leaves_the_old_or_the_new_program_or_a_mark() -> None:
    named = Network("station", "home", None, "name")
    board = old_board()
    old = dict(board.files)
    deployed(board, network=named)
    new = dict(board.files)
    outcomes = []
    for steps_left in range(20):
        board = FakeRepl()
        board.files = dict(old)
        board.steps_left = steps_left
        with suppress(ToolError):
            deployed(board, network=named)
        now = {path: text for path, text in board.files.items() if not path.endswith(".new")}
        assert b'"password": "a secret"' in now["/network.json"]
        outcomes.append("mark" if copying.MARK in now else "old" if now == old else "new")
        assert outcomes[-1] != "new" or now == new, steps_left
        board.steps_left = 10**6
        deployed(board, network=named)  # the next deploy completes it
        assert board.files == new
    assert outcomes[0] == "old" and outcomes[1] == "mark" and outcomes[-1] == "new"
    assert outcomes == sorted(outcomes, key=["old", "mark", "new"].index)


@pytest.mark.usefixtures("small", "tested")
def test_a_change_of_one_file_needs_no_mark() -> None:
    board = FakeRepl()
    deployed(board)
    board.written.clear()
    deployed(board, network=Network("station", "home", "another secret"))
    assert board.written == ["/network.json"]


@pytest.mark.usefixtures("small", "tested")
class TestMainOfTheUser:
    @pytest.fixture
    def board(self) -> FakeRepl:
        board = FakeRepl()
        board.files["/main.py"] = USERS_MAIN
        return board

    def test_without_main_it_is_refused(self, board: FakeRepl) -> None:
        with pytest.raises(ToolError, match=r"`--main replace`.*`--main keep`"):
            deployed(board)
        assert board.files == {"/main.py": USERS_MAIN}
        assert board.resets == 1

    def test_replace_moves_it(self, board: FakeRepl) -> None:
        deployed(board, main=copying.REPLACE)
        assert board.files["/main.own.py"] == USERS_MAIN
        assert board.files["/main.py"] == CODE["/main.py"]

    def test_replace_does_not_overwrite_an_earlier_one(self, board: FakeRepl) -> None:
        board.files["/main.own.py"] = b"an earlier one"
        with pytest.raises(ToolError, match=r"mpremote rm :/main\.own\.py"):
            deployed(board, main=copying.REPLACE)
        assert board.written == []

    def test_keep_starts_it(self, board: FakeRepl, tested: list[object]) -> None:
        lines = deployed(board, main=copying.KEEP)
        assert board.files["/main.py"] == USERS_MAIN
        assert board.files["/slotmq_main.py"] == CODE["/main.py"]
        assert "slotmq_main" in lines[-1]
        assert board.resets == 1 and tested == []

    def test_replace_after_keep_removes_slotmq_main(self, board: FakeRepl) -> None:
        deployed(board, main=copying.KEEP)
        deployed(board, main=copying.REPLACE)
        assert "/slotmq_main.py" not in board.files


def test_every_main_py_that_deploy_ever_wrote_is_known() -> None:
    main = board_files.code(BOARD, boards.load(BOARD).mpy_arch)["/main.py"]
    assert hashlib.sha256(main).hexdigest() in board_files.known_mains()
    assert len(board_files.known_mains()) > 1


@pytest.mark.usefixtures("small", "tested")
class TestFlashSpace:
    def test_each_replaced_file_frees_its_space(self) -> None:
        board = FakeRepl()
        deployed(board)
        for path in CODE:
            board.files[path] = b"old" * 4000
        board.probe = probe(flash=16384)
        deployed(board)
        assert board.files["/main.py"] == b"new"

    def test_small_old_files_do_not_suffice(self) -> None:
        board = FakeRepl()
        deployed(board)
        for path in (*CODE, "/lib/slotmq/gone.mpy"):
            board.files[path] = b"old"
        board.probe = probe(flash=16384)
        board.written.clear()
        with pytest.raises(ToolError, match=r"16,384 .*--erase"):
            deployed(board, network=HOME_AGAIN)
        assert board.written == []
