"""mypy checks firmware/, the boards' region files and examples/ with the stubs of each port."""

import subprocess
import sys
from pathlib import Path

import pytest

from slotmq_dev.peers import stubs

FIRMWARE = Path(__file__).parents[3] / "firmware"
BOARDS = FIRMWARE.parent / "boards"
EXAMPLES = sorted((FIRMWARE.parent / "examples").glob("*.py"))
EXAMPLES = [file for file in EXAMPLES if file.name != "computer.py"]  # no board runs it
# What runs on a computer only: sensor_logger.py checks for it, app.py takes pins from computer.py.
CPYTHON_ONLY = ('Module has no attribute "monotonic"', "(possibly by an import)  [no-redef]")
# rp2's stubs lack Flash's arguments and the result of ioctl. The emulated board runs that code.
FLASH = (
    *('for "Flash"', '"Flash" defined in', "operand types for *", "left operand type for *"),
    "Both left and right operands",
)
CONFIG = """\
[mypy]
python_version = 3.11
check_untyped_defs = True
explicit_package_bases = True
custom_typeshed_dir = {stubs}
mypy_path = {stubs}:{firmware}
cache_dir = {folder}/cache

[mypy-slotmq.*,computer]
ignore_missing_imports = True
follow_imports = skip
"""


def complaints(port: str, folder: Path, *files: Path) -> list[str]:
    """mypy's errors in these files, without those in the stubs themselves."""
    config = folder / "mypy.ini"
    where = stubs.folder(port)
    config.write_text(CONFIG.format(stubs=where, firmware=FIRMWARE, folder=folder))
    command = [sys.executable, "-m", "mypy", "--config-file", str(config), *map(str, files)]
    said = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert "checked" in said.stdout, said.stdout + said.stderr
    return [line for line in said.stdout.splitlines() if not line.startswith(str(where))][:-1]


def without_flash(found: list[str]) -> list[str]:
    """The errors but for those that incomplete stubs of Flash cause."""
    return [line for line in found if not any(text in line for text in FLASH)]


@pytest.mark.parametrize("port", stubs.PACKAGES)
def test_the_firmware_has_no_type_errors(port: str, tmp_path: Path) -> None:
    files = sorted(FIRMWARE.glob("slotmq_run/*.py"))
    assert complaints(port, tmp_path, FIRMWARE / "main.py", *files) == []


def test_the_region_of_an_esp32_has_no_type_errors(tmp_path: Path) -> None:
    assert complaints("esp32", tmp_path, BOARDS / "region_esp32.py") == []


def test_the_region_of_an_rp2_has_no_type_errors(tmp_path: Path) -> None:
    assert without_flash(complaints("rp2", tmp_path, BOARDS / "region_rp2.py")) == []


def test_a_wrong_name_in_the_region_of_an_rp2_is_found(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text((BOARDS / "region_rp2.py").read_text().replace("statvfs", "statfs"))
    (line,) = without_flash(complaints("rp2", tmp_path, wrong))
    assert '"statfs"' in line


@pytest.mark.parametrize("port", stubs.PACKAGES)
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda file: file.name)
def test_the_examples_have_no_type_errors(port: str, example: Path, tmp_path: Path) -> None:
    found = complaints(port, tmp_path, example)
    assert [line for line in found if not any(text in line for text in CPYTHON_ONLY)] == []


@pytest.mark.parametrize("port", stubs.PACKAGES)
def test_a_wrong_name_in_the_firmware_is_found(port: str, tmp_path: Path) -> None:
    text = (FIRMWARE / "slotmq_run/station.py").read_text()
    wrong = tmp_path / "wrong.py"
    wrong.write_text(text.replace("self.nic.disconnect()", "self.nic.disconect()"))
    (line,) = complaints(port, tmp_path, wrong)
    assert '"WLAN"' in line and '"disconect"' in line
