"""The lists of files are complete: lib/package.json, lib/manifest.py and the wheel's packages."""

import json
import re
import tomllib
from pathlib import Path

import pytest

import slotmq

ROOT = Path(__file__).parents[2]
LIB = ROOT / "lib"
PACKAGE = json.loads((LIB / "package.json").read_text())
# All files but those that only CPython imports, and the one that no module imports
FILES = sorted(str(path.relative_to(LIB)) for path in (LIB / "slotmq").rglob("*.py"))
FOR_BOARDS = [
    name for name in FILES if not name.endswith(("_cpython.py", "slotmq/protocol/packet.py"))
]


def test_mip_installs_every_file_that_a_board_needs() -> None:
    assert [target for target, _ in PACKAGE["urls"]] == FOR_BOARDS


def test_mip_finds_each_file_next_to_package_json() -> None:
    assert all(target == url for target, url in PACKAGE["urls"])


def test_a_firmware_freezes_the_same_files(monkeypatch: pytest.MonkeyPatch) -> None:
    frozen: list[str] = []

    def package(name: str, files: list[str], **_: object) -> None:
        frozen.extend(f"{name}/{file}" for file in files)

    monkeypatch.chdir(LIB)  # as MicroPython's build does
    manifest = (LIB / "manifest.py").read_text()
    exec(manifest, {"package": package})
    assert frozen == FOR_BOARDS


def test_all_files_name_the_same_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    changes = (ROOT / "CHANGELOG.md").read_text()
    assert PACKAGE["version"] == project["version"] == slotmq.__version__
    assert f"## {slotmq.__version__}" in changes


def test_the_wheel_has_the_broker_and_all_tools() -> None:
    tools = ROOT / "tools"
    folders = {path.parent.relative_to(tools) for path in tools.rglob("__init__.py")}
    users = {".".join(("slotmq_tools", *path.parts)) for path in folders}
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"][
        "packages"
    ]
    assert users == {name for name in packages if name.startswith("slotmq_tools")}
    broker = {path.parent.relative_to(LIB) for path in (LIB / "slotmq").rglob("__init__.py")}
    assert {".".join(path.parts) for path in broker} == {
        name for name in packages if name.split(".")[0] == "slotmq"
    }


def test_typed_programs_and_tests_find_the_types_in_the_wheel() -> None:
    """PEP 561"""
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    for package, folder in (("slotmq", LIB / "slotmq"), ("slotmq_tools", ROOT / "tools")):
        assert "py.typed" in setuptools["package-data"][package]
        assert (folder / "py.typed").is_file()


def test_tools_in_the_wheel_import_none_of_those_of_developers() -> None:
    files = [*(ROOT / "tools").rglob("*.py")]
    assert len(files) > 100
    wrong = r"(from|import) .*\bslotmq_dev\b"
    assert not [path for path in files if re.search(wrong, path.read_text())]
