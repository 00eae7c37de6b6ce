"""The files of a journal on a computer: their modes and owners, and which of them are reused.

A journal has a second file, NAME.reserve, which the next generation overwrites.
"""

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from slotmq.journal import location
from slotmq.journal.medium_file import FileMedium
from slotmq.platform import ondemand

SNAPSHOT, LIMIT, HEADER = 1500, 6000, 16


def wrote(medium: FileMedium, generation: int, byte: bytes, n: int = 50) -> None:
    medium.begin(generation)
    medium.append(byte * n, 0, n)


def switched(medium: FileMedium, generation: int, byte: bytes, n: int = 50) -> None:
    wrote(medium, generation, byte, n)
    medium.switch()
    medium.spare(1000)


def content(path: Path) -> bytes:
    return path.read_bytes()[HEADER:]


class Journal:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.reserve = path.with_name(path.name + ".reserve")
        self.new = path.with_name(path.name + ".new")
        self.medium = FileMedium(str(path), SNAPSHOT, LIMIT)

    def again(self) -> None:
        """Open the journal again, as after a power cut."""
        self.medium.close()
        self.medium = FileMedium(str(self.path), SNAPSHOT, LIMIT)
        (generation,) = self.medium.generations()
        self.medium.open(generation)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    made = Journal(tmp_path / "slotmq.db")
    switched(made.medium, 1, b"a")
    yield made
    made.medium.close()


@pytest.fixture
def open_to_all() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("open_to_all")
def test_only_the_owner_may_open_any_of_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From their creation on: a process that opened one earlier could read later data."""
    made: list[int] = []
    opened = os.open

    def watched(path: str, flags: int, *mode: int) -> int:
        file = opened(path, flags, *mode)
        made.append(os.fstat(file).st_mode & 0o77 if os.path.isfile(path) else 0)  # noqa: PTH113
        return file

    monkeypatch.setattr(os, "open", watched)
    path = tmp_path / "slotmq.db"
    lock = location.lock(str(path))
    assert lock
    medium = FileMedium(str(path), SNAPSHOT, LIMIT)
    for generation in range(1, 4):
        switched(medium, generation, b"a")
    wrote(medium, 4, b"b")
    medium.set_aside(4, True)
    files = sorted(tmp_path.iterdir())
    assert len(files) == 4  # the journal, NAME.lock, NAME.new and the damaged copy
    assert {oct(file.stat().st_mode & 0o777) for file in files} == {oct(0o600)}
    assert len(made) > len(files)
    assert not any(made)
    medium.close()
    lock.close()


def test_a_lock_file_that_others_may_open_becomes_private(tmp_path: Path) -> None:
    file = tmp_path / "slotmq.db.lock"
    file.touch(0o644)
    lock = location.lock(str(tmp_path / "slotmq.db"))
    assert lock
    assert file.stat().st_mode & 0o777 == 0o600
    lock.close()


def test_a_linked_lock_file_keeps_its_mode(tmp_path: Path) -> None:
    file, theirs = tmp_path / "slotmq.db.lock", tmp_path / "theirs"
    theirs.touch(0o644)
    file.symlink_to(theirs)
    with pytest.raises(OSError, match=str(errno.ELOOP)):
        location.lock(str(tmp_path / "slotmq.db"))
    file.unlink()
    file.hardlink_to(theirs)
    lock = location.lock(str(tmp_path / "slotmq.db"))
    assert lock
    lock.close()
    assert theirs.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("name", ["path", "reserve", "new"])
def test_a_file_that_others_could_open_is_not_overwritten(journal: Journal, name: str) -> None:
    """For example a restored copy: processes that have it open must not see new data."""
    wrote(journal.medium, 2, b"b")
    journal.again()
    if name == "reserve":
        journal.reserve.touch(0o600)
    file: Path = getattr(journal, name)
    file.chmod(0o644)
    with file.open("rb") as open_before:
        for generation in range(2, 5):
            switched(journal.medium, generation, b"secret%d" % generation)
        assert b"secret" not in open_before.read()
    modes = [file.stat().st_mode & 0o777 for file in (journal.path, journal.reserve)]
    assert modes == [0o600, 0o600]


def test_a_file_of_another_user_is_replaced(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may have restored it: it can be written, but its mode cannot be changed."""
    us = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: us + 1)
    theirs = journal.path.stat().st_ino
    monkeypatch.setattr(os, "chmod", refused := Refused(errno.EPERM))
    keeps = journal.path.open("rb")  # so that its inode is not reused
    for generation in range(2, 5):
        wrote(journal.medium, generation, b"b")
        assert journal.new.stat().st_ino != theirs
        journal.medium.switch()
        journal.again()
    assert not refused.calls
    assert content(journal.path) == b"b" * 50
    keeps.close()


class Refused:
    def __init__(self, code: int) -> None:
        self.code = code
        self.calls: list[object] = []

    def __call__(self, *args: object, **options: object) -> None:
        self.calls.append(args)
        raise OSError(self.code, os.strerror(self.code))


def cut_after_the_link(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as cut:
        cut.setattr(os, "rename", Refused(errno.EIO))
        with pytest.raises(OSError, match="Input/output"):
            journal.medium.switch()
    journal.again()


def test_a_journal_behind_a_symbolic_link_is_not_overwritten_as_the_reserve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    there = Journal(tmp_path / "data" / "slotmq.db")
    switched(there.medium, 1, b"a")
    there.medium.close()
    link = tmp_path / "slotmq.db"
    link.symlink_to(there.path)
    journal = Journal(link)
    journal.again()
    wrote(journal.medium, 2, b"b")
    cut_after_the_link(journal, monkeypatch)
    wrote(journal.medium, 2, b"c")
    journal.medium.sync()
    assert content(link) == content(there.path) == b"a" * 50
    journal.medium.close()


@pytest.mark.parametrize("end", [".reserve", ".new"])
def test_nor_on_a_file_system_without_link_counts(
    journal: Journal, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """Some FUSE file systems report 1 for each file."""
    journal.medium.close()
    journal.reserve.unlink()
    os.link(journal.path, str(journal.path) + end)

    def counting_none(look: Callable[..., os.stat_result]) -> Callable[..., os.stat_result]:
        def counts_none(*args: object, **options: object) -> os.stat_result:
            found = list(look(*args, **options))
            found[3] = 1
            return os.stat_result(found)

        return counts_none

    for look in ("stat", "lstat"):
        monkeypatch.setattr(os, look, counting_none(getattr(os, look)))
    journal.again()
    wrote(journal.medium, 2, b"b")
    journal.medium.sync()
    assert content(journal.path) == b"a" * 50


def test_if_no_file_can_be_opened_the_reserve_stays(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    reserve = journal.reserve.open("rb")  # so that its inode is not reused
    opened: Callable[..., object] = open

    def too_many(path: str, *how: object, **options: object) -> object:
        if path.endswith(".new"):
            raise OSError(errno.EMFILE, "Too many open files")
        return opened(path, *how, **options)

    # Imported here: an earlier test may have unloaded it.
    start = ondemand.take("journal.medium_file_start", 0)
    monkeypatch.setattr(start, "open", too_many, raising=False)
    with pytest.raises(OSError, match="Too many open files"):
        journal.medium.begin(2)
    monkeypatch.delattr(start, "open")
    wrote(journal.medium, 2, b"b")
    assert journal.new.stat().st_ino == os.fstat(reserve.fileno()).st_ino
    reserve.close()


def test_if_the_folder_cannot_be_synced_nothing_is_overwritten(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power cut the file that became the reserve may be the journal again."""
    wrote(journal.medium, 2, b"b")
    with monkeypatch.context() as broken:
        start = ondemand.take("journal.medium_file_start", 0)
        broken.setattr(start, "_sync_folder", failed := Refused(errno.EIO))
        with pytest.raises(OSError, match="Input/output"):
            journal.medium.switch()
        assert content(journal.path) == b"b" * 50
        with pytest.raises(OSError, match="Input/output"):
            journal.medium.begin(3)
        assert len(failed.calls) == 2
        assert content(journal.reserve)[:50] == b"a" * 50
    switched(journal.medium, 3, b"c")
    assert content(journal.path) == b"c" * 50
