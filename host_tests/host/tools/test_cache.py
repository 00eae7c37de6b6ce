"""The cache folder: where it is, and that a folder in it is complete or absent."""

import threading
from pathlib import Path

import pytest

from slotmq_tools import cache


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SLOTMQ_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"SLOTMQ_CACHE": "/own", "XDG_CACHE_HOME": "/shared"}, "/own"),
        ({"XDG_CACHE_HOME": "/shared", "HOME": "/home/me"}, "/shared/slotmq"),
        ({"HOME": "/home/me"}, "/home/me/.cache/slotmq"),
    ],
)
def test_the_environment_names_the_cache(
    variables: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SLOTMQ_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert cache.root() == Path(expected)


def test_a_folder_is_filled_once(own_cache: Path) -> None:
    fills: list[Path] = []

    def fill(folder: Path) -> None:
        fills.append(folder)
        (folder / "file").write_text("content")

    first, second = cache.folder("a/b", fill), cache.folder("a/b", fill)
    assert first == second == own_cache / "a/b"
    assert (first / "file").read_text() == "content"
    assert len(fills) == 1


def test_a_failed_fill_leaves_nothing_and_can_be_repeated(own_cache: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").touch()
        raise RuntimeError("out of space")

    with pytest.raises(RuntimeError, match="out of space"):
        cache.folder("tool", fail)
    assert [path.name for path in own_cache.iterdir()] == ["locks"]
    assert list(cache.folder("tool", lambda folder: None).iterdir()) == []


def test_a_second_fill_waits_for_the_first() -> None:
    filling, may_end = threading.Event(), threading.Event()
    fills: list[str] = []

    def slow_fill(folder: Path) -> None:
        filling.set()
        assert may_end.wait(10)
        fills.append("first")

    first = threading.Thread(target=cache.folder, args=("tool", slow_fill))
    second = threading.Thread(
        target=cache.folder, args=("tool", lambda folder: fills.append("second"))
    )
    first.start()
    assert filling.wait(10)
    second.start()
    may_end.set()
    first.join(10)
    second.join(10)
    assert fills == ["first"]
