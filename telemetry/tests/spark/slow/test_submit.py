"""`spark-submit` on a standalone cluster with two workers makes the tables of one computer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from slotmq_telemetry import submit
from slotmq_telemetry.cluster import archive
from slotmq_telemetry.lake import Lake
from slotmq_telemetry.schemas import SILVER
from telemetry.tests.conftest import lines_of
from telemetry.tests.tables import campaign

from .cluster import Cluster, environment

_SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"
SEASONS = range(6)

pytestmark = pytest.mark.timeout(900)


def submitted(cluster: Cluster, tmp_path: Path, *arguments: object) -> str:
    packed = archive(tmp_path / "slotmq.zip")
    command = [_SUBMIT, "--master", cluster.master, "--py-files", packed]
    command += ["--conf", "spark.driver.host=127.0.0.1", submit.__file__, *arguments]
    env = cluster.environment | {"PYSPARK_DRIVER_PYTHON": sys.executable}
    ran = subprocess.run(list(map(str, command)), env=env, capture_output=True, text=True,
                         check=False)  # fmt: skip
    assert ran.returncode == 0, (ran.stdout + ran.stderr)[-3000:]
    return ran.stdout


def executors(cluster: Cluster) -> set[Path]:
    """The folders of all that there have been."""
    return set(cluster.folder.glob("worker-*/app-*/*"))


def test_two_workers_make_the_tables_of_the_truth(cluster: Cluster, tmp_path: Path) -> None:
    lived = campaign.run(tmp_path / "harvest", SEASONS)
    tables, before = tmp_path / "tables", executors(cluster)
    said = submitted(cluster, tmp_path, "ingest", lived.folder, tables)
    bundles = sum(bool(line.path) for line in lines_of(lived.folder))
    assert f"bronze: {bundles} new bundles, {bundles} in total" in said
    assert "boards with something new" in said
    found = Lake(tables).rows(SILVER["messages"])
    names = ("board", "boot", "seq")
    got = sorted(zip(*(found.column(name).to_pylist() for name in names), strict=True))
    assert got == sorted(tuple(row[name] for name in names) for row in lived.all("messages"))
    workers = {path.parts[-3] for path in executors(cluster) - before}
    assert workers == {"worker-0", "worker-1"}, "both took part"


def test_a_session_of_spark_says_nothing_of_its_own(tmp_path: Path) -> None:
    """Only the steps."""
    lived = campaign.run(tmp_path / "harvest", SEASONS[:1])
    command = [sys.executable, "-m", "slotmq_tools.cli", "telemetry", "ingest", lived.folder,
               tmp_path / "tables", "--master", "local[1]"]  # fmt: skip
    env = environment(tmp_path) | {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    ran = subprocess.run(list(map(str, command)), env=env, capture_output=True, text=True,
                         check=False)  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert ran.stderr == ""
    assert [line.partition(":")[0] for line in ran.stdout.splitlines()] == [
        "bronze", "silver", "gold",
    ]  # fmt: skip
