"""The folder of a backup: what belongs to it, and that nothing else is touched or restored."""

import json
from pathlib import Path
from typing import Any

import pytest

from host_tests.tools.fake_repl import BOARD, FakeRepl
from slotmq_tools import boards
from slotmq_tools.deploy import backup, payload, saved
from slotmq_tools.errors import ToolError

THEIRS = b"import slotmq  # my own main.py\n"


def board() -> Any:
    """With the program on it, and an application's own file."""
    made = FakeRepl()
    made.files = {
        "/lib/slotmq/hot.mpy": b"",
        "/slotmq.boots": b"+",
        "/slotmq.conf": b"listener 1883\n",
        "/lib/mine.py": b"x",
        "/main.py": payload.code(BOARD, boards.load(BOARD).mpy_arch)["/main.py"],
    }
    return made


def test_it_has_all_but_the_code_and_comes_back(tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    assert backup.save(board(), folder) == ["/lib/mine.py", "/slotmq.conf"]
    assert folder.stat().st_mode & 0o77 == 0
    assert all(file.stat().st_mode & 0o77 == 0 for file in folder.rglob("*.conf"))
    fresh: Any = FakeRepl()
    assert backup.restore(fresh, folder) == ["/lib/mine.py", "/slotmq.conf"]
    assert fresh.files == {"/lib/mine.py": b"x", "/slotmq.conf": b"listener 1883\n"}


def test_a_main_py_that_is_not_slotmqs_belongs_to_it(tmp_path: Path) -> None:
    theirs = board()
    theirs.files["/slotmq_main.py"] = theirs.files["/main.py"]
    theirs.files["/main.py"] = THEIRS
    names = backup.save(theirs, tmp_path / "saved")
    assert "/main.py" in names and "/slotmq_main.py" not in names
    fresh: Any = FakeRepl()
    backup.restore(fresh, tmp_path / "saved")
    assert fresh.files["/main.py"] == THEIRS


def test_the_next_one_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    first = board()
    backup.save(first, folder)
    del first.files["/lib/mine.py"]
    assert backup.save(first, folder) == ["/slotmq.conf"]
    assert not (folder / "lib/mine.py").exists()


def test_one_that_is_cut_off_leaves_the_one_before(tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    first = board()
    backup.save(first, folder)

    def fails(_path: str) -> bytes:
        raise ToolError("the board went away")

    first.read = fails
    with pytest.raises(ToolError, match="went away"):
        backup.save(first, folder)
    assert backup.restore(FakeRepl(), folder) == ["/lib/mine.py", "/slotmq.conf"]  # type: ignore[arg-type]


def test_a_folder_with_something_else_is_left_as_it_is(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "letter.txt").write_text("hello")
    with pytest.raises(ToolError, match="has files and is no backup: name a folder that is empty"):
        backup.save(board(), tmp_path)
    assert tmp_path.stat().st_mode & 0o777 == 0o755
    assert [file.name for file in tmp_path.iterdir()] == ["letter.txt"]


def test_what_lies_beside_is_neither_restored_nor_removed(tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    backup.save(board(), folder)
    (folder / "letter.txt").write_text("hello")
    fresh: Any = FakeRepl()
    backup.restore(fresh, folder)
    assert "/letter.txt" not in fresh.files
    backup.save(board(), folder)
    assert (folder / "letter.txt").read_text() == "hello"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (None, "is no backup: it has no slotmq-backup.json"),
        ("[]", "is not as `slotmq backup` has written it"),
        ('{"files": ["/../letter.txt"]}', "is not as `slotmq backup` has written it"),
        ('{"files": []}', "interrupted, and has nothing to restore"),
        ('{"files": ["/gone"]}', "gone: No such file or directory: the backup is not whole"),
    ],
)
def test_what_is_no_backup_is_not_restored(
    text: str | None, complaint: str, tmp_path: Path
) -> None:
    (tmp_path / "letter.txt").write_text("hello")
    folder = tmp_path / "saved"
    folder.mkdir()
    if text:
        (folder / saved.LIST).write_text(text)
    fresh: Any = FakeRepl()
    with pytest.raises(ToolError, match=complaint):
        backup.restore(fresh, folder)
    assert fresh.files == {}


def test_the_list_names_what_was_saved(tmp_path: Path) -> None:
    backup.save(board(), tmp_path / "saved")
    found = json.loads((tmp_path / "saved" / saved.LIST).read_text())
    assert found == {"files": ["/lib/mine.py", "/slotmq.conf"]}


def test_an_erase_takes_all() -> None:
    one = board()
    assert backup.erase(one, BOARD) == "5 files removed"
    assert one.files == {}
