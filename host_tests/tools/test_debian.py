"""Debian's packages: the mirror out of the machine's configuration, and clear refusals.

apt itself reads the sources here, from files written for the test.
"""

import platform
from pathlib import Path

import pytest

from slotmq_tools import debian
from slotmq_tools.errors import ToolError

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


def test_a_machine_without_a_mirror_is_told_so(apt_sources: Path) -> None:
    (apt_sources / "security.list").write_text(SECURITY)
    with pytest.raises(ToolError, match="no mirror of Debian's archive"):
        debian.mirror()


def test_no_network_is_one_line(apt_sources: Path) -> None:
    (apt_sources / "debian.list").write_text(UNREACHABLE)
    with pytest.raises(ToolError) as refused:
        debian.unpack(["micropython"], debian.architecture(64))
    text = str(refused.value)
    assert text.startswith("cannot fetch micropython (amd64): apt-get: ")
    assert "127.0.0.1" in text
    assert "\n" not in text


def test_no_apt_is_one_line(apt_sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(apt_sources))
    with pytest.raises(ToolError, match="it takes Debian's apt-get, which is not here"):
        debian.unpack(["micropython"], debian.architecture(64))


def test_what_is_in_the_cache_needs_no_apt(
    apt_sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(apt_sources))
    arch = debian.architecture(64)
    kept = apt_sources.parent / f"cache/debian/{debian.SUITE}-{arch.name}/one+two"
    kept.mkdir(parents=True)
    assert debian.unpack(["one", "two"], arch).root == kept


def test_an_unknown_machine_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "vax")
    with pytest.raises(ToolError, match="no 32-bit Debian architecture is known for a vax"):
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
