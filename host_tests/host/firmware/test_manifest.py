"""The manifests with which a board's firmware freezes broker and firmware/."""

import os
from pathlib import Path

import pytest

from slotmq_tools import boards

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", [name for name in boards.names() if boards.load(name).mpy_arch])
def test_a_boards_manifest_freezes_broker_and_firmware(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With fakes of MicroPython's manifest functions; `make test-board` uses the real ones."""
    frozen: list[str] = []
    ports: list[str] = []

    def package(folder: str, base_path: str = ".", **_: object) -> None:
        found = [each.name for each in Path(base_path, folder).glob("*.py")]
        frozen.extend(f"{folder}/{each}" for each in found)

    def include(path: str) -> None:
        if path.startswith("$"):
            ports.append(path)
            return
        file = Path(path).resolve()
        before = Path.cwd()
        os.chdir(file.parent)
        exec(file.read_text(), functions)
        os.chdir(before)

    functions = {"include": include, "package": package}
    monkeypatch.chdir(ROOT)
    include(f"boards/{name}/manifest.py")
    assert len(ports) == 1 and ports[0].endswith("manifest.py")
    assert {
        "slotmq/core.py",
        "slotmq/viper.py",
        "slotmq_run/boot.py",
        "slotmq_run/network_link.py",
    } <= set(frozen)
