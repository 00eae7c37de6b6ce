"""Runs of the simulator on executors give the same rows as in this process."""

from __future__ import annotations

from pyspark.sql import SparkSession

from host_tests.host.sim_users.test_batch import CROWD, runs
from slotmq_telemetry import simulations
from slotmq_tools.scenario import batch
from slotmq_tools.scenario.batch import Work


def test_rows_equal_those_of_this_process(spark: SparkSession) -> None:
    work = Work(CROWD, None, batch.grid(["connections=1,4"]))
    assert simulations.rows_in(spark, work, range(1, 4)) == runs(work, range(1, 4))


def test_a_run_that_fails_is_a_row_with_its_seed(spark: SparkSession) -> None:
    work = Work(CROWD, None, ({"connections": 4}, {"connections": 900}))
    rows = simulations.rows_in(spark, work, range(3, 5))
    assert [(row["seed"], row["point"]) for row in rows if row["failure"]] == [(3, 1), (4, 1)]
    assert "connections" in rows[1]["failure"]
