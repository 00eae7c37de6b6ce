"""Debian's packages: the mirror out of the machine's configuration, and clear refusals.

apt itself reads the sources here, from files written for the test.
"""

import hashlib
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from slotmq_tools import progress
from slotmq_tools.errors import ToolError
from slotmq_tools.fetch import debian, retry
from slotmq_tools.fetch.debian_archives import ARCHIVES

ONE_LINE = "deb [arch=amd64] http://mirror.example/debian bookworm main contrib\n"
DEB822 = """\
Types: deb deb-src
URIs: https://mirror.example/debian
Suites: trixie trixie-updates
Components: main
"""
SECURITY = "deb http://security.example/debian-security bookworm-security main\n"
THIRD_PARTY = "deb http://vendor.example/repository stable main\n"
APT_GET = """\
#!/bin/sh
for last; do :; done
case "$*" in
*print-uris*) echo "'http://mirror.example/dists/trixie/main/binary-amd64/Packages'" ;;
*) printf 'pmstatus:x:1:y\\ndlstatus:1:20.0:x\\ndlstatus:1:100.0:x\\n' >/dev/fd/${last##*=} ;;
esac
"""
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


def test_a_machine_without_a_mirror_is_told_so(apt_sources: Path) -> None:
    (apt_sources / "security.list").write_text(SECURITY)
    with pytest.raises(ToolError, match="no mirror of Debian's archive"):
        debian.mirror()


def test_no_network_is_one_line(apt_sources: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (apt_sources / "debian.list").write_text(UNREACHABLE)
    with pytest.raises(ToolError) as refused:
        debian.unpack(["micropython"], debian.architecture(64))
    text = str(refused.value)
    assert text.startswith("cannot fetch micropython (amd64): apt-get: ")
    assert "127.0.0.1" in text
    assert "\n" not in text
    tried = [line for line in capsys.readouterr().err.splitlines() if "once more in" in line]
    assert len(tried) == 2 and all("127.0.0.1" in line for line in tried)


# Gives the sources in a second attempt; the first one breaks off.
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


def test_sources_that_came_in_part_are_fetched_again(
    apt_sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (apt_sources / "apt-get").write_text(BREAKS_OFF)
    (apt_sources / "apt-get").chmod(0o755)
    monkeypatch.setenv("PATH", str(apt_sources), prepend=":")
    target = tmp_path / "unpacked"
    target.mkdir()
    debian.fetch_sources(["one"], target)
    assert [file.name for file in target.iterdir()] == ["one-1"]


def test_no_network_is_one_line_for_sources_too(apt_sources: Path, tmp_path: Path) -> None:
    (apt_sources / "debian.list").write_text(UNREACHABLE)
    target = tmp_path / "sources"
    target.mkdir()
    with pytest.raises(ToolError, match=r"apt-get: .*127\.0\.0\.1"):
        debian.fetch_sources(["lwip"], target)
    assert list(target.iterdir()) == []  # apt's own files are gone


def test_no_apt_is_one_line(apt_sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(apt_sources))
    with pytest.raises(ToolError, match="it takes Debian's apt-get, which is not here"):
        debian.unpack(["micropython"], debian.architecture(64))


# Its index does not fit its signature; its archives are there.
OUT_OF_STEP = """\
#!/bin/sh
case "$*" in
*print-uris*) echo "'file:{pool}/dists/trixie/main/binary-amd64/Packages'" ;;
*) echo 'E: Failed to fetch Packages.xz  File has unexpected size' >&2; exit 100 ;;
esac
"""


@pytest.mark.parametrize("intact", [True, False])
def test_a_mirror_whose_index_is_out_of_step_gives_what_is_known_by_its_hash(
    intact: bool, apt_sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "one.deb").write_bytes(b"one" if intact else b"another")
    for name, text in (
        ("apt-get", OUT_OF_STEP.format(pool=tmp_path)),
        ("dpkg", '#!/bin/sh\ncp "$2" "$3"\n'),
    ):
        (apt_sources / name).write_text(text)
        (apt_sources / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(apt_sources), prepend=":")
    known = {"one.deb": hashlib.sha256(b"one").hexdigest()}
    monkeypatch.setitem(ARCHIVES, (("one",), "amd64"), known)
    arch = debian.Architecture("amd64", "x86_64-linux-gnu", "ld-linux-x86-64.so.2")
    if intact:
        assert (debian.unpack(["one"], arch).root / "one.deb").read_bytes() == b"one"
    else:
        with pytest.raises(ToolError, match=r"cannot fetch one .*Hash"):
            debian.unpack(["one"], arch)


def test_it_shows_how_far_the_fetch_is(apt_sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("apt-get", APT_GET), ("dpkg", "#!/bin/sh\n")):
        (apt_sources / name).write_text(text)
        (apt_sources / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(apt_sources), prepend=":")
    shown: list[object] = []

    @contextmanager
    def bar(label: str) -> Iterator[Callable[[float], None]]:
        shown.append(label)
        yield shown.append

    monkeypatch.setattr(progress, "bar", bar)
    debian.unpack(["one", "two"], debian.architecture(64))
    assert shown == ["fetching one two (amd64)", 10.0, 50.0, 60.0, 100.0]


def test_elsewhere_than_on_a_terminal_it_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.bar("fetching") as reached:
        for percent in (0, 33.3, 20, 100):
            reached(percent)
    assert capsys.readouterr().err == "fetching\n"


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
