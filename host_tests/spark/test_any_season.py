"""Seasons that hypothesis draws, several in one folder: silver is what is true of them, exactly.

Few examples of many seasons, since each build of the tables takes seconds. More of them, one at
a time and without Spark, are in host_tests/telemetry/test_seasons.py.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from slotmq_tools.telemetry import bronze, build
from slotmq_tools.telemetry.lake import Lake
from slotmq_tools.telemetry.season.world import Knobs

from ..telemetry.drawing import SEASONS
from . import campaign
from .made import Made

# A board's name follows from its season's seed.
SEED = st.integers(0, 2**32)
DRAWN = st.lists(st.tuples(SEASONS, SEED), min_size=4, max_size=12, unique_by=lambda each: each[1])
FEW = settings(
    max_examples=3, deadline=None, derandomize=True, phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


@given(DRAWN)
@FEW
def test_silver_is_the_truth(spark: SparkSession, seasons: list[tuple[Knobs, int]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lived = campaign.live(folder / "harvest", seasons)
        lake = Lake(folder / "tables").made()
        bronze.ingest(spark, lived.folder, lake)
        build.build_silver(spark, lake)
        made = Made(spark, lived, lake)
        assert {table: made.wrong(table) for table in build.SILVER} == {
            table: [] for table in build.SILVER
        }
