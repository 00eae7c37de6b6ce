"""The firmware's files fit the boards' modules, as their ports' stubs describe these."""

import subprocess
import sys
from pathlib import Path

import pytest

from slotmq_tools.peers import stubs

FIRMWARE = Path(__file__).parents[3] / "firmware"
BOARDS = FIRMWARE.parent / "boards"
EXAMPLES = sorted((FIRMWARE.parent / "examples").glob("*.py"))
ON_A_COMPUTER = 'Module has no attribute "monotonic"'  # sensor_logger.py asks which it is on
# What rp2's stubs do not know: Flash's arguments, and that ioctl answers these with a number.
# The emulated board runs the file that uses them.
FLASH = (
    *('for "Flash"', '"Flash" defined in', "operand types for *", "left operand type for *"),
    "Both left and right operands",
)
CONFIG = """\
[mypy]
python_version = 3.11
check_untyped_defs = True
custom_typeshed_dir = {stubs}
mypy_path = {stubs}:{firmware}
cache_dir = {folder}/cache

[mypy-slotmq.*]
ignore_missing_imports = True
follow_imports = skip
"""


def complaints(port: str, folder: Path, *files: Path) -> list[str]:
    """What mypy says of these files; what it says of the stubs themselves is theirs."""
    config = folder / "mypy.ini"
    where = stubs.folder(port)
    config.write_text(CONFIG.format(stubs=where, firmware=FIRMWARE, folder=folder))
    command = [sys.executable, "-m", "mypy", "--config-file", str(config), *map(str, files)]
    said = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert "checked" in said.stdout, said.stdout + said.stderr
    return [line for line in said.stdout.splitlines() if not line.startswith(str(where))][:-1]


def of_flash(found: list[str]) -> list[str]:
    """What the stubs do not know is no complaint."""
    return [line for line in found if not any(text in line for text in FLASH)]


@pytest.mark.parametrize("port", stubs.PACKAGES)
def test_the_firmware_fits(port: str, tmp_path: Path) -> None:
    files = sorted(FIRMWARE.glob("slotmq_run/*.py"))
    assert complaints(port, tmp_path, FIRMWARE / "main.py", *files) == []


def test_what_finds_an_esp32s_raw_flash_fits(tmp_path: Path) -> None:
    assert complaints("esp32", tmp_path, BOARDS / "region_esp32.py") == []


def test_what_finds_an_rp2s_raw_flash_fits(tmp_path: Path) -> None:
    assert of_flash(complaints("rp2", tmp_path, BOARDS / "region_rp2.py")) == []


def test_what_an_rp2_does_not_have_would_be_found_there(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text((BOARDS / "region_rp2.py").read_text().replace("statvfs", "statfs"))
    (line,) = of_flash(complaints("rp2", tmp_path, wrong))
    assert '"statfs"' in line


@pytest.mark.parametrize("port", stubs.PACKAGES)
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda file: file.name)
def test_the_examples_fit(port: str, example: Path, tmp_path: Path) -> None:
    found = complaints(port, tmp_path, example)
    assert [line for line in found if ON_A_COMPUTER not in line] == []


@pytest.mark.parametrize("port", stubs.PACKAGES)
def test_what_no_board_has_would_be_found(port: str, tmp_path: Path) -> None:
    text = (FIRMWARE / "slotmq_run/station.py").read_text()
    wrong = tmp_path / "wrong.py"
    wrong.write_text(text.replace("self.nic.disconnect()", "self.nic.disconect()"))
    (line,) = complaints(port, tmp_path, wrong)
    assert '"WLAN" has no attribute "disconect"' in line
