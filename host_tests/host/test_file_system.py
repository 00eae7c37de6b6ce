"""The file system of a folder on Linux, and that a journal on FAT makes no promises."""

from pathlib import Path

import pytest

from slotmq.journal import location
from slotmq.platform import filesystem_cpython

MOUNTS = r"""/dev/a / ext4 rw 0 0
/dev/b /usb\040stick vfat rw 0 0
/dev/c /usb\040stick/in ext4 rw 0 0
/dev/d /over vfat rw 0 0
/dev/e /over ext4 rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("/usb stick/a", "vfat"),
        ("/usb stick/in/a", "host"),
        ("/usb sticks/a", "host"),
        ("/over/a", "host"),
    ],
)
def test_the_mount_nearest_to_the_path_counts(tmp_path: Path, path: str, wanted: str) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(MOUNTS)
    assert filesystem_cpython.kind(path, str(mounts)) == wanted


def test_without_a_list_of_mounts_it_is_the_hosts(tmp_path: Path) -> None:
    assert filesystem_cpython.kind("/usb stick/a", str(tmp_path / "none")) == "host"


def test_fat_makes_no_promises(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert location.promises(str(tmp_path / "a")) == ("host", True)
    monkeypatch.setattr(filesystem_cpython, "kind", lambda path: "vfat")
    assert location.promises(str(tmp_path / "a")) == ("vfat", False)
