"""The lists of files are complete: lib/manifest.py and the wheel's packages."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

import slotmq
from slotmq_tools.pack import by_address, mpy, packed

ROOT = Path(__file__).parents[2]
LIB = ROOT / "lib"


def test_a_firmware_freezes_what_other_boards_get(monkeypatch: pytest.MonkeyPatch) -> None:
    frozen: dict[str, str] = {}

    def package(name: str, base_path: str, **_: object) -> None:
        files = sorted(Path(base_path, name).rglob("*"))
        frozen.update((str(file.relative_to(base_path)), file.read_text()) for file in files)

    monkeypatch.chdir(LIB)  # as MicroPython's build does
    monkeypatch.setattr(sys, "path", list(sys.path))
    exec((LIB / "manifest.py").read_text(), {"package": package})
    sources = {name: file.read_text() for name, file in mpy.sources("slotmq").items()}
    assert frozen == {name: by_address(text) for name, text in packed(sources).items()}


def test_all_files_name_the_same_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    changes = (ROOT / "CHANGELOG.md").read_text()
    assert project["version"] == slotmq.__version__
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
