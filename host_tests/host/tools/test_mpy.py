"""Compiling for MicroPython: native code, the cache, and what is refused."""

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from slotmq_tools.errors import ToolError
from slotmq_tools.micropython import MicroPython
from slotmq_tools.pack import mpy

VIPER = """\
import micropython

@micropython.viper
def add(a: int, b: int) -> int:
    return a + b
"""
X86 = MicroPython(("micropython",), 32, (1, 25, 0), 0x706)


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with small stand-ins for the packages that are compiled."""
    monkeypatch.setenv("SLOTMQ_CACHE", str(tmp_path / "cache"))
    texts = {
        "slotmq/__init__.py": "",
        "slotmq/fast/bytes_viper.py": VIPER,
        "slotmq/topics.py": "shown = 36\n",
        "slotmq_boards/HOST/limits.py": "LIMITS = 1\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    def sources(package: str) -> dict[str, Path]:
        found = (tmp_path / package).rglob("*.py")
        return {str(source.relative_to(tmp_path)): source for source in found}

    monkeypatch.setattr(mpy, "sources", sources)
    return tmp_path


def test_only_native_code_depends_on_the_architecture(packages: Path) -> None:
    compiled = mpy.build("armv6m")
    made = {str(path.relative_to(compiled)): path.read_bytes() for path in compiled.rglob("*.mpy")}
    architecture_of = {name: header[2] >> 2 for name, header in made.items()}
    assert architecture_of == {
        "slotmq/__init__.mpy": 0,
        "slotmq/viper.mpy": 4,
        "slotmq/topics.mpy": 0,
        "slotmq_boards/HOST/limits.mpy": 0,
    }


def test_tracebacks_name_the_module(packages: Path) -> None:
    compiled = (mpy.build("x86") / "slotmq/topics.mpy").read_bytes()
    assert b"topics" in compiled
    assert b"topics.py" not in compiled
    assert str(packages).encode() not in compiled


def test_modules_for_cpython_are_left_out() -> None:
    found = mpy.sources("slotmq")
    assert "slotmq/fast/bytes_viper.py" in found
    assert "slotmq/fast/bytes_cpython.py" not in found


def test_nothing_is_compiled_twice(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = mpy.build("x86")
    monkeypatch.delattr(mpy, "compile_file")
    assert mpy.build("x86") == first


def test_any_change_of_the_input_makes_another_folder(
    packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [mpy.build("x86"), mpy.build("x64")]
    topics = packages / "slotmq/topics.py"
    topics.write_text("DOLLAR = 37\n")
    folders.append(mpy.build("x86"))
    topics.rename(packages / "slotmq/names.py")
    folders.append(mpy.build("x86"))
    monkeypatch.setattr(metadata, "version", lambda name: "another")
    folders.append(mpy.build("x86"))
    assert len(set(folders)) == 5


def test_a_syntax_error_is_one_line_with_file_and_line(packages: Path) -> None:
    (packages / "slotmq/topics.py").write_text("good = 1\nbad = = 2\n")
    with pytest.raises(ToolError) as refused:
        mpy.build("x86")
    text = str(refused.value)
    assert "slotmq/topics.py" in text
    assert "line 2" in text
    assert "\n" not in text


def test_a_branch_too_long_for_the_processor_is_refused(packages: Path) -> None:
    """mpy-cross exits with 0, although the branch in its output is wrong."""
    body = "        b[0] = b[1] + b[2] * b[3]\n" * 100
    text = "import micropython\n@micropython.viper\ndef f(x):\n    b = ptr8(x)\n"
    text += f"    while b[4]:\n        if b[5]:\n            return\n{body}"
    (packages / "slotmq/fast/bytes_viper.py").write_text(text)
    with pytest.raises(ToolError, match=r"mpy-cross: .*out of range"):
        mpy.build("xtensawin")


def test_a_micropython_with_another_mpy_format_is_refused(packages: Path) -> None:
    assert mpy.build_for(X86).is_dir()
    older = MicroPython(X86.start, 32, (1, 25, 0), 0x605)
    with pytest.raises(ToolError, match="0x605"):
        mpy.build_for(older)


def test_build_writes_one_boards_files(tmp_path: Path) -> None:
    """Its limits and no other's, and native code for its processor."""
    command = [sys.executable, "-m", "slotmq_tools.cli", "build", "--board", "RPI_PICO_W"]
    subprocess.run([*command, str(tmp_path)], check=True, capture_output=True)
    made = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.mpy")}
    assert {"slotmq/viper.mpy", "slotmq/core.mpy"} <= made
    boards = {name for name in made if name.startswith("slotmq_boards/")}
    assert "slotmq_boards/RPI_PICO_W/limits.mpy" in boards
    assert not any("HOST" in name for name in boards)
    assert (tmp_path / "slotmq/viper.mpy").read_bytes()[2] >> 2 == 4  # armv6m


@pytest.mark.parametrize(
    ("board", "arch"), [("RPI_PICO_W", "armv6m"), ("ESP32_GENERIC", "xtensawin")]
)
def test_a_board_gets_what_it_may_load(board: str, arch: str) -> None:
    names = {name.stem for name in mpy.for_board(mpy.build(arch), board)}
    assert {"core", "viper", "v5"} <= names
    assert ("flush" in names) == (board != "RPI_PICO_W")
