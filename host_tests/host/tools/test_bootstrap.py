"""The virtual environment, on a machine without any package of Python or Debian's python3-venv."""

import os
import subprocess
import sys
from importlib import util
from pathlib import Path

import pytest

from slotmq_tools import bootstrap

ROOT = Path(__file__).parents[3]


def bare(code: str, *words: object, stderr: int = subprocess.PIPE) -> str:
    """Run the code in a Python that finds its own library and this repository; -> its output."""
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); {code}"
    command = [sys.executable, "-I", "-S", "-c", code, *map(str, words)]
    return subprocess.run(
        command, stdout=subprocess.PIPE, stderr=stderr, text=True, check=True
    ).stdout


def test_it_needs_no_package(tmp_path: Path) -> None:
    bare("from tools import bootstrap; sys.exit(bootstrap.main())", tmp_path / "venv")
    assert (tmp_path / "venv/bin/pip").exists()


def test_a_terminal_shows_what_is_fetched_before_anything_is_installed() -> None:
    terminal, its_end = os.openpty()
    bare("from tools import progress\nwith progress.bar('fetching pip'): pass", stderr=its_end)
    os.close(its_end)
    assert os.read(terminal, 100) == b"fetching pip ...\r\n"
    os.close(terminal)


def test_pip_is_installed_without_python3_venv(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(util, "find_spec", lambda name: None)
    bootstrap.make_environment(tmp_path / "venv")
    python = tmp_path / "venv/bin/python"
    answer = subprocess.check_output([python, "-m", "pip", "--version"], text=True)
    assert str(tmp_path / "venv") in answer


def test_an_old_python_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 9, "final", 0))
    assert bootstrap.main() == 1
    assert "Python 3.11" in capsys.readouterr().err
