"""Debian's packages: the mirror in apt's configuration, the cache, and errors.

apt reads its configuration from files of the test.
"""

import platform
from pathlib import Path

import pytest

from slotmq_tools import progress
from slotmq_tools.errors import ToolError
from slotmq_tools.fetch import debian, retry

ONE_LINE = "deb [arch=amd64] http://mirror.example/debian bookworm main contrib\n"
DEB822 = """\
Types: deb deb-src
URIs: https://mirror.example/debian
Suites: trixie trixie-updates
Components: main
"""
SECURITY = "deb http://security.example/debian-security bookworm-security main\n"
THIRD_PARTY = "deb http://vendor.example/repository stable main\n"
UNREACHABLE = "deb http://127.0.0.1:9/debian bookworm main\n"


@pytest.fixture
def apt_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that apt reads its sources from during the test."""
    folder = tmp_path / "sources.list.d"
    folder.mkdir()
    config = tmp_path / "apt.conf"
    config.write_text(
        f'Dir::Etc::sourcelist "/dev/null";\nDir::Etc::sourceparts "{folder}";\n'
        'Acquire::Retries::Delay "false";\n'
    )
    monkeypatch.setenv("APT_CONFIG", str(config))
    monkeypatch.setenv("SLOTMQ_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(retry, "PAUSES_S", (0, 0))
    return folder


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"debian.list": ONE_LINE}, "http://mirror.example/debian"),
        ({"debian.sources": DEB822}, "https://mirror.example/debian"),
        ({"a.list": SECURITY, "b.list": ONE_LINE}, "http://mirror.example/debian"),
        ({"a.list": THIRD_PARTY, "b.sources": DEB822}, "https://mirror.example/debian"),
        (
            {"a.sources": "Enabled: no\n" + DEB822, "b.list": ONE_LINE},
            "http://mirror.example/debian",
        ),
    ],
    ids=["one-line", "deb822", "not security", "not a vendor's", "not what is disabled"],
)
def test_mirror(files: dict[str, str], expected: str, apt_sources: Path) -> None:
    for name, text in files.items():
        (apt_sources / name).write_text(text)
    assert debian.mirror() == expected


def test_a_machine_without_a_mirror_is_an_error(apt_sources: Path) -> None:
    (apt_sources / "security.list").write_text(SECURITY)
    with pytest.raises(ToolError, match="mirror"):
        debian.mirror()


def test_without_network_the_error_is_one_line(
    apt_sources: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (apt_sources / "debian.list").write_text(UNREACHABLE)
    with pytest.raises(ToolError) as refused:
        debian.unpack(["micropython"], debian.architecture(64))
    text = str(refused.value)
    assert "micropython (amd64): apt-get: " in text
    assert "127.0.0.1" in text
    assert "\n" not in text
    retries = [line for line in capsys.readouterr().err.splitlines() if "again" in line]
    assert len(retries) == 2 and all("127.0.0.1" in line for line in retries)


# The first download of the sources breaks off, the second succeeds.
BREAKS_OFF = """\
#!/bin/sh
case "$*" in
*print-uris*) echo "'http://mirror.example/dists/trixie/main/binary-amd64/Packages'" ;;
*"source --download-only"*)
    if [ -e one_1.orig.tar.gz.asc ]; then
        mkdir one-1 && tar -czf one_1.orig.tar.gz one-1
    else
        echo part >one_1.orig.tar.gz
        touch one_1.orig.tar.gz.asc
        echo 'E: Connection broken' >&2
        exit 100
    fi ;;
esac
"""


def test_an_incomplete_archive_is_fetched_again(
    apt_sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (apt_sources / "apt-get").write_text(BREAKS_OFF)
    (apt_sources / "apt-get").chmod(0o755)
    monkeypatch.setenv("PATH", str(apt_sources), prepend=":")
    target = tmp_path / "unpacked"
    target.mkdir()
    debian.fetch_sources(["one"], target)
    assert [file.name for file in target.iterdir()] == ["one-1"]


UNKNOWN = BREAKS_OFF.replace("if [ -e one_1.orig.tar.gz.asc ]", "if touch one_1.orig.tar.zz")


def test_what_this_machine_cannot_unpack_is_not_fetched_again(
    apt_sources: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (apt_sources / "apt-get").write_text(UNKNOWN.replace("one_1.orig.tar.gz one-1", "x one-1"))
    (apt_sources / "apt-get").chmod(0o755)
    monkeypatch.setenv("PATH", str(apt_sources), prepend=":")
    target = tmp_path / "unpacked"
    target.mkdir()
    with pytest.raises(ToolError, match="cannot unpack the sources of one: unknown compression"):
        debian.fetch_sources(["one"], target)
    assert "again" not in capsys.readouterr().err


def test_without_network_sources_leave_nothing_behind(apt_sources: Path, tmp_path: Path) -> None:
    (apt_sources / "debian.list").write_text(UNREACHABLE)
    target = tmp_path / "sources"
    target.mkdir()
    with pytest.raises(ToolError, match=r"apt-get: .*127\.0\.0\.1"):
        debian.fetch_sources(["lwip"], target)
    assert list(target.iterdir()) == []


def test_without_apt_the_error_names_it(
    apt_sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(apt_sources))
    with pytest.raises(ToolError, match="apt-get is missing"):
        debian.unpack(["micropython"], debian.architecture(64))


def test_without_a_terminal_no_progress_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.bar("fetching") as reached:
        for percent in (0, 33.3, 20, 100):
            reached(percent)
    assert capsys.readouterr().err == ""


def test_packages_in_the_cache_need_no_apt(
    apt_sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(apt_sources))
    arch = debian.architecture(64)
    kept = apt_sources.parent / f"cache/debian/{debian.SUITE}-{arch.name}/one+two"
    kept.mkdir(parents=True)
    assert debian.unpack(["one", "two"], arch).root == kept


def test_an_unknown_machine_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "vax")
    with pytest.raises(ToolError, match=r"32-bit .*vax"):
        debian.architecture(32)


def test_a_program_starts_through_the_unpacked_loader() -> None:
    arch = debian.Architecture("i386", "i386-linux-gnu", "ld-linux.so.2")
    unpacked = debian.Unpacked(Path("/cache/x"), arch)
    assert unpacked.command("usr/bin/tool") == [
        "/cache/x/usr/lib/i386-linux-gnu/ld-linux.so.2",
        "--library-path",
        "/cache/x/usr/lib/i386-linux-gnu",
        "/cache/x/usr/bin/tool",
    ]
