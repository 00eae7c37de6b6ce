"""What a board is given: the lists in lib/package.json and lib/manifest.py are whole."""

import json
import re
import tomllib
from pathlib import Path

import pytest

import slotmq

ROOT = Path(__file__).parents[2]
LIB = ROOT / "lib"
PACKAGE = json.loads((LIB / "package.json").read_text())
# Every file of slotmq but the twins for CPython.
FILES = sorted(str(path.relative_to(LIB)) for path in (LIB / "slotmq").rglob("*.py"))
FOR_BOARDS = [name for name in FILES if not name.endswith("_cpython.py")]


def test_mip_installs_every_file_that_a_board_needs() -> None:
    assert [target for target, _ in PACKAGE["urls"]] == FOR_BOARDS


def test_mip_finds_each_file_beside_package_json() -> None:
    assert all(target == url for target, url in PACKAGE["urls"])


def test_a_firmware_freezes_the_same_files(monkeypatch: pytest.MonkeyPatch) -> None:
    frozen: list[str] = []

    def package(name: str, files: list[str], **_: object) -> None:
        frozen.extend(f"{name}/{file}" for file in files)

    monkeypatch.chdir(LIB)  # as MicroPython's build does
    manifest = (LIB / "manifest.py").read_text()
    exec(manifest, {"package": package})
    assert frozen == FOR_BOARDS


def test_there_is_one_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    changes = (LIB / "CHANGELOG.md").read_text()
    assert PACKAGE["version"] == project["version"] == slotmq.__version__
    assert f"## {slotmq.__version__}" in changes


def test_what_is_installed_is_all_but_what_developers_run() -> None:
    tools = ROOT / "tools"
    folders = {path.parent.relative_to(tools) for path in tools.rglob("__init__.py")}
    users = {
        ".".join(("slotmq_tools", *path.parts)) for path in folders if "dev" not in path.parts
    }
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"][
        "packages"
    ]
    assert users == {name for name in packages if name.startswith("slotmq_tools")}


def test_what_is_installed_needs_nothing_of_what_developers_run() -> None:
    files = [path for path in (ROOT / "tools").rglob("*.py") if "dev" not in path.parts]
    assert not [path for path in files if re.search(r"(from|import) .*\bdev\b", path.read_text())]
