"""Random seasons, different ones in each run, many in one harvest folder: silver and gold equal
the truth exactly. In every second season the bundles are compacted after bronze has read them.

All seasons are built at once, since a build takes seconds. silver/test_random_seasons.py draws
more seasons with hypothesis, one at a time and without Spark. A run that fails prints its first
seed; the environment variable SEASONS_FROM repeats that run.
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
