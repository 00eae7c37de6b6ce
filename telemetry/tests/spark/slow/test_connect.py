"""A session on a local server of Spark Connect makes the tables that this process makes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from host_tests.host.sim_users.test_batch import CROWD
from slotmq_telemetry.lake import Lake
from slotmq_telemetry.schemas import GOLD
from slotmq_tools.ports import free_port
from telemetry.tests.tables import campaign
from telemetry.tests.tables.rows import Made

from .cluster import environment, kill_tree

_SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"

pytestmark = pytest.mark.timeout(600)


def test_ingest_over_spark_connect(tmp_path: Path) -> None:
    lived = campaign.run(tmp_path / "harvest", range(2))
    env = environment(tmp_path) | {"SPARK_DAEMON_MEMORY": "800m"}
    port = free_port()
    # Its executors import slotmq from what the client sends: not from here.
    command: list[str | Path] = [
        _SUBMIT, "--master", "local[2]", "--driver-memory", "800m",
        "--class", "org.apache.spark.sql.connect.service.SparkConnectServer",
        "--conf", f"spark.connect.grpc.binding.port={port}",
        "--conf", "spark.connect.grpc.binding.address=127.0.0.1",
        "--conf", "spark.ui.enabled=false", "spark-internal",
    ]  # fmt: skip
    crowd = tmp_path / "crowd.toml"
    crowd.write_text(CROWD)
    log = (tmp_path / "server.log").open("wb")
    server = subprocess.Popen(command, stdout=log, stderr=log, env=env, cwd=tmp_path)
    try:
        words = ["telemetry", "ingest", str(lived.folder), str(tmp_path / "tables"), "--master"]
        ran, simulated = (
            subprocess.run(
                [sys.executable, "-m", "slotmq_tools.cli", *line, f"sc://127.0.0.1:{port}"],
                capture_output=True, text=True, check=False, env=os.environ | env, timeout=100,
            )
            for line in (words, ["sim", str(crowd), "--seeds", "0..3", "--spark"])
        )  # fmt: skip
    finally:
        kill_tree(server.pid)
        server.wait()
        log.close()
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert simulated.returncode == 0, simulated.stderr[-3000:]
    made = Made(lived, Lake(tmp_path / "tables"))
    assert made.wrong() == [] and made.lake.rows(GOLD["traffic"]).num_rows
    assert pyspark.__version__ in (tmp_path / "server.log").read_text(errors="replace")
