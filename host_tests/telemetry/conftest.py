"""The session of Spark that all tests share, and a campaign in it. Without pyspark, as in an
environment for the broker alone, the tests of this folder are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from slotmq_tools.telemetry import session

    settings = {"spark.sql.shuffle.partitions": "2", "spark.driver.memory": "1g"}
    made = session.start("local[2]", settings)
    yield made
    made.stop()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "harvest"
