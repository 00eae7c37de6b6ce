"""Seasons that nobody has seen before, other ones each time, many in one folder: silver and gold
are what is true of them, exactly. Every second one has its bundles put together after bronze has
had them.

One build of many seasons, since each takes seconds: hypothesis, which begins every run with the
same dull ones, draws more of them in host_tests/telemetry/test_seasons.py, one at a time and
without Spark. A run that is wrong tells its first seed, and SEASONS_FROM repeats it.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from pyspark.sql import SparkSession

from slotmq_tools.telemetry import bronze, build
from slotmq_tools.telemetry.lake import Lake

from . import campaign
from .made import Made

COUNT = 8


def test_silver_and_gold_are_the_truth(spark: SparkSession, tmp_path: Path) -> None:
    first = int(os.environ.get("SEASONS_FROM", secrets.randbelow(2**40)))
    lived = campaign.run(tmp_path / "harvest", range(first, first + COUNT))
    lake = Lake(tmp_path / "tables").made()
    bronze.ingest(spark, lived.folder, lake)
    lived.compact()
    bronze.ingest(spark, lived.folder, lake)
    build.build_silver(spark, lake)
    build.build_gold(spark, lake)
    made = Made(spark, lived, lake)
    wrong = {table: made.wrong(table) for table in [*build.SILVER, *build.GOLD]}
    assert not any(wrong.values()), f"SEASONS_FROM={first}: {wrong}"
