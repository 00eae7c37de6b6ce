"""`slotmq backup`: which files are saved and restored, and what is left alone in the folder."""

import errno
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from host_tests.host.deploy.fake_repl import BOARD, FakeRepl
from slotmq_tools import boards
from slotmq_tools.deploy import backup, backup_folder, board_files
from slotmq_tools.errors import ToolError

USERS_MAIN = b"import slotmq  # my own main.py\n"


def board() -> Any:
    """With slotmq's program and a file of the user."""
    made = FakeRepl()
    made.files = {
        "/lib/slotmq/viper.mpy": b"",
        "/slotmq.boots": b"+",
        "/slotmq.conf": b"listener 1883\n",
        "/lib/mine.py": b"x",
        "/main.py": board_files.code(BOARD, boards.load(BOARD).mpy_arch)["/main.py"],
    }
    return made


def restored(folder: Path) -> dict[str, bytes]:
    """The files that a fresh board gets of a backup."""
    fresh: Any = FakeRepl()
    assert backup.restore(fresh, folder) == [*fresh.files]
    return fresh.files  # type: ignore[no-any-return]


SAVED = {"/lib/mine.py": b"x", "/slotmq.conf": b"listener 1883\n"}


def test_all_files_but_the_code_are_saved_and_restored(tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    assert backup.save(board(), folder) == [*SAVED]
    assert json.loads((folder / backup_folder.LIST).read_text()) == {"files": [*SAVED]}
    assert folder.stat().st_mode & 0o77 == 0
    assert all(file.stat().st_mode & 0o77 == 0 for file in folder.rglob("*.conf"))
    assert restored(folder) == SAVED


def test_a_main_py_of_the_user_is_saved(tmp_path: Path) -> None:
    one = board()
    one.files["/slotmq_main.py"] = one.files["/main.py"]
    one.files["/main.py"] = USERS_MAIN
    backup.save(one, tmp_path / "saved")
    assert restored(tmp_path / "saved") == SAVED | {"/main.py": USERS_MAIN}


def test_the_next_backup_replaces_the_old_one_and_no_other_file(tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    first = board()
    backup.save(first, folder)
    (folder / "letter.txt").write_text("hello")
    assert restored(folder) == SAVED
    del first.files["/lib/mine.py"]
    assert backup.save(first, folder) == ["/slotmq.conf"]
    assert not (folder / "lib/mine.py").exists()
    assert (folder / "letter.txt").read_text() == "hello"


def test_a_board_that_stops_answering_leaves_the_old_backup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_path: str) -> bytes:
        raise ToolError("pulled")

    folder = tmp_path / "saved"
    first = board()
    backup.save(first, folder)
    monkeypatch.setattr(first, "read", fails)
    with pytest.raises(ToolError, match="pulled"):
        backup.save(first, folder)
    assert restored(folder) == SAVED


def test_a_folder_with_other_files_is_refused_unchanged(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "letter.txt").write_text("hello")
    with pytest.raises(ToolError, match=f"{tmp_path} .*is no backup"):
        backup.save(board(), tmp_path)
    assert tmp_path.stat().st_mode & 0o777 == 0o755
    assert [file.name for file in tmp_path.iterdir()] == ["letter.txt"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (None, "no slotmq-backup.json"),
        ("[]", "slotmq-backup.json is not"),
        ('{"files": ["/../letter.txt"]}', "slotmq-backup.json is not"),
        ('{"files": []}', "nothing to restore"),
        ('{"files": ["/gone"]}', "gone: No such file or directory"),
    ],
)
def test_a_folder_that_is_no_complete_backup_is_not_restored(
    text: str | None, complaint: str, tmp_path: Path
) -> None:
    (tmp_path / "letter.txt").write_text("hello")
    folder = tmp_path / "saved"
    folder.mkdir()
    if text:
        (folder / backup_folder.LIST).write_text(text)
    fresh: Any = FakeRepl()
    with pytest.raises(ToolError, match=complaint):
        backup.restore(fresh, folder)
    assert fresh.files == {}


def test_erase_removes_all_files() -> None:
    one = board()
    assert backup.erase(one, BOARD).startswith("5 files ")
    assert one.files == {}


class TestDiskErrors:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        """With a backup."""
        backup.save(board(), tmp_path / "saved")
        return tmp_path / "saved"

    def test_a_full_disk_leaves_the_old_backup(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        later = board()
        later.files["/slotmq.conf"] = b"listener 1999\n"
        for writes in range(4):  # needed: two files and the list
            left = iter(range(writes))

            def write_down(file: Path, content: bytes, left: Iterator[int] = left) -> None:
                if next(left, None) is None:
                    file.write_bytes(content[:3])
                    raise OSError(errno.ENOSPC, "No space left on device", str(file))
                file.write_bytes(content)

            monkeypatch.setattr(backup_folder, "_write_synced", write_down)
            if writes == 3:
                backup.save(later, folder)
            else:
                with pytest.raises(OSError, match="No space left"):
                    backup.save(later, folder)
                assert sorted(each.name for each in folder.iterdir()) == [
                    *("lib", "slotmq-backup.json", "slotmq.conf")
                ]
            changed = {"/slotmq.conf": b"listener 1999\n"} if writes == 3 else {}
            assert restored(folder) == SAVED | changed

    def test_an_interrupted_replacement_is_finished_by_the_next_command(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        later = board()
        later.files |= {"/slotmq.conf": b"listener 1999\n", "/new.py": b"n"}
        del later.files["/lib/mine.py"]
        replace = Path.replace
        for renames in range(1, 4):  # of the list, then of each file
            left = iter(range(renames))

            def cut(file: Path, target: Path, left: Iterator[int] = left) -> Path:
                if next(left, None) is None:
                    raise OSError(errno.EIO, "Input/output error", str(file))
                return replace(file, target)

            with monkeypatch.context() as patched:
                patched.setattr(Path, "replace", cut)
                with pytest.raises(OSError, match="Input/output error"):
                    backup.save(later, folder)
            assert restored(folder) == {"/new.py": b"n", "/slotmq.conf": b"listener 1999\n"}
            assert not (folder / backup_folder.NEXT).exists()
            assert not (folder / "lib").exists()
            backup.save(board(), folder)  # for the next round

    def test_a_folder_that_cannot_be_made(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(OSError, match="Not a directory"):
            backup.save(board(), tmp_path / "file" / "saved")


@pytest.mark.parametrize(
    "name", ["/../escaped.txt", "/lib/../../x", "//..", "/slotmq-backup.json"]
)
def test_a_path_outside_the_folder_or_of_the_list_is_refused(name: str, tmp_path: Path) -> None:
    bad = board()
    bad.files[name] = b"x"
    with pytest.raises(ToolError, match="cannot be saved in"):
        backup.save(bad, tmp_path / "saved")
    assert list(tmp_path.iterdir()) == []


def test_a_path_through_a_symbolic_link_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    backup.save(board(), folder)
    (folder / "elsewhere").symlink_to(tmp_path)
    bad = board()
    bad.files["/elsewhere/escaped.txt"] = b"x"
    with pytest.raises(ToolError, match="cannot be saved in"):
        backup.save(bad, folder)
    assert not (tmp_path / "escaped.txt").exists()


def test_a_file_becomes_a_folder_and_back(tmp_path: Path) -> None:
    one, other = board(), board()
    one.files["/thing"] = b"a file"
    other.files["/thing/inside"] = b"in a folder"
    for each in (one, other, one):
        backup.save(each, tmp_path / "saved")
        found = {name: text for name, text in each.files.items() if "thing" in name}
        assert restored(tmp_path / "saved") == SAVED | found
