"""The one session of Spark that the tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from slotmq_tools.telemetry import bronze, build, session
from slotmq_tools.telemetry.lake import Lake

from . import campaign
from .made import Made

SEASONS = range(210, 240)  # which have all that is to be shown

# Nothing is compiled for so little data; the tests in slow/ run with all that Spark does.
QUICK = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    made = session.start("local[2]", QUICK)
    yield made
    made.stop()


@pytest.fixture(scope="session")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Seasons of every kind, made into all tables."""
    folder = tmp_path_factory.mktemp("seasons")
    lived = campaign.run(folder / "harvest", SEASONS)
    lake = Lake(folder / "tables").made()
    bronze.ingest(spark, lived.folder, lake)
    build.build_silver(spark, lake)
    build.build_gold(spark, lake)
    return Made(spark, lived, lake)
