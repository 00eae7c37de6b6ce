"""The folder of a backup: what belongs to it, and that nothing else is touched or restored."""

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

THEIRS = b"import slotmq  # my own main.py\n"


def board() -> Any:
    """With the program on it, and an application's own file."""
    made = FakeRepl()
    made.files = {
        "/lib/slotmq/viper.mpy": b"",
        "/slotmq.boots": b"+",
        "/slotmq.conf": b"listener 1883\n",
        "/lib/mine.py": b"x",
        "/main.py": board_files.code(BOARD, boards.load(BOARD).mpy_arch)["/main.py"],
    }
    return made


def test_it_has_all_but_the_code_and_comes_back(tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    assert backup.save(board(), folder) == ["/lib/mine.py", "/slotmq.conf"]
    assert folder.stat().st_mode & 0o77 == 0
    assert all(file.stat().st_mode & 0o77 == 0 for file in folder.rglob("*.conf"))
    fresh: Any = FakeRepl()
    assert backup.restore(fresh, folder) == ["/lib/mine.py", "/slotmq.conf"]
    assert fresh.files == {
        "/lib/mine.py": b"x",
        "/slotmq.conf": b"listener 1883\n",
    }


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
        (folder / backup_folder.LIST).write_text(text)
    fresh: Any = FakeRepl()
    with pytest.raises(ToolError, match=complaint):
        backup.restore(fresh, folder)
    assert fresh.files == {}


def test_the_list_names_what_was_saved(tmp_path: Path) -> None:
    backup.save(board(), tmp_path / "saved")
    found = json.loads((tmp_path / "saved" / backup_folder.LIST).read_text())
    assert found == {"files": ["/lib/mine.py", "/slotmq.conf"]}


def test_an_erase_takes_all() -> None:
    one = board()
    assert backup.erase(one, BOARD) == "5 files removed"
    assert one.files == {}


class TestADiskThatIsFull:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        """With a backup."""
        backup.save(board(), tmp_path / "saved")
        return tmp_path / "saved"

    def test_the_backup_before_is_not_lost(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        later = board()
        later.files["/slotmq.conf"] = b"listener 1999\n"
        for room in range(4):  # writes: two files, and the list
            left = iter(range(room))

            def write_down(file: Path, content: bytes, left: Iterator[int] = left) -> None:
                if next(left, None) is None:
                    file.write_bytes(content[:3])
                    raise OSError(errno.ENOSPC, "No space left on device", str(file))
                file.write_bytes(content)

            monkeypatch.setattr(backup_folder, "_write_down", write_down)
            fresh: Any = FakeRepl()
            if room == 3:
                backup.save(later, folder)
                backup.restore(fresh, folder)
                assert fresh.files["/slotmq.conf"] == b"listener 1999\n"
            else:
                with pytest.raises(ToolError, match="No space left on device"):
                    backup.save(later, folder)
                assert sorted(each.name for each in folder.iterdir()) == [
                    *("lib", "slotmq-backup.json", "slotmq.conf")
                ]
                backup.restore(fresh, folder)
                assert fresh.files == {
                    "/lib/mine.py": b"x",
                    "/slotmq.conf": b"listener 1883\n",
                }

    def test_one_that_is_cut_off_in_the_midst_of_the_change_is_the_new_one(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        later = board()
        later.files |= {"/slotmq.conf": b"listener 1999\n", "/new.py": b"n"}
        del later.files["/lib/mine.py"]
        replace = Path.replace
        for steps in range(1, 4):  # the list's own name, then each file
            left = iter(range(steps))

            def cut(file: Path, target: Path, left: Iterator[int] = left) -> Path:
                if next(left, None) is None:
                    raise OSError(errno.EIO, "Input/output error", str(file))
                return replace(file, target)

            with monkeypatch.context() as patched:
                patched.setattr(Path, "replace", cut)
                with pytest.raises(ToolError, match="Input/output error"):
                    backup.save(later, folder)
            fresh: Any = FakeRepl()
            backup.restore(fresh, folder)
            assert fresh.files == {
                "/new.py": b"n",
                "/slotmq.conf": b"listener 1999\n",
            }
            assert not (folder / backup_folder.NEXT).exists()
            assert not (folder / "lib").exists()
            backup.save(board(), folder)  # again, as it was

    def test_a_folder_that_cannot_be_written_is_one_line(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(ToolError, match="Not a directory"):
            backup.save(board(), tmp_path / "file" / "saved")


@pytest.mark.parametrize(
    "name", ["/../escaped.txt", "/lib/../../x", "//..", "/slotmq-backup.json"]
)
def test_a_file_of_the_board_cannot_lie_outside_nor_be_the_list(name: str, tmp_path: Path) -> None:
    bad = board()
    bad.files[name] = b"x"
    with pytest.raises(ToolError, match="a file that cannot lie in"):
        backup.save(bad, tmp_path / "saved")
    assert list(tmp_path.iterdir()) == []


def test_nor_where_a_link_leads(tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    backup.save(board(), folder)
    (folder / "elsewhere").symlink_to(tmp_path)
    bad = board()
    bad.files["/elsewhere/escaped.txt"] = b"x"
    with pytest.raises(ToolError, match="a file that cannot lie in"):
        backup.save(bad, folder)
    assert not (tmp_path / "escaped.txt").exists()


def test_a_folder_takes_the_place_of_a_file_and_the_other_way_round(tmp_path: Path) -> None:
    one, other = board(), board()
    one.files["/thing"] = b"a file"
    other.files["/thing/inside"] = b"in a folder"
    for each in (one, other, one):
        backup.save(each, tmp_path / "saved")
        fresh: Any = FakeRepl()
        backup.restore(fresh, tmp_path / "saved")
        assert [fresh.files[name] for name in fresh.files if "thing" in name] == [
            content for name, content in each.files.items() if "thing" in name
        ]
