"""The virtual environment, on a machine without Debian's python3-venv."""

import subprocess
import sys
from importlib import util
from pathlib import Path

import pytest

from slotmq_tools.dev import bootstrap


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
