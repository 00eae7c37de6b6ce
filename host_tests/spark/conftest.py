"""The one session of Spark that the tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from slotmq_tools.telemetry import session

# Less of a compiler, and less memory: there is little data.
QUICK = {
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    made = session.start("local[2]", QUICK)
    yield made
    made.stop()
