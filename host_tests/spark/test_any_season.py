"""Seasons that hypothesis draws, other ones each time, many in one folder: silver and gold are
what is true of them, exactly. Every second one has its bundles put together after bronze has
had them.

One example of many seasons, since each build of the tables takes seconds. More of them, one at
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

Drawn = list[tuple[Knobs, int]]


def is_worth_a_build(seasons: Drawn) -> bool:
    """Hypothesis begins with seasons in which nothing happens."""
    return sum(one.boards * one.boots * one.steps for one, _ in seasons) > 500


# A board's name follows from its season's seed.
SEED = st.integers(0, 2**32)
DRAWN = st.lists(st.tuples(SEASONS, SEED), min_size=16, max_size=24, unique_by=lambda one: one[1])
ONE = settings(
    max_examples=1, deadline=None, derandomize=False, phases=[Phase.generate], print_blob=True,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


@given(DRAWN.filter(is_worth_a_build))
@ONE
def test_silver_and_gold_are_the_truth(spark: SparkSession, seasons: Drawn) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lived = campaign.live(folder / "harvest", seasons)
        lake = Lake(folder / "tables").made()
        bronze.ingest(spark, lived.folder, lake)
        lived.compact()
        bronze.ingest(spark, lived.folder, lake)
        build.build_silver(spark, lake)
        build.build_gold(spark, lake)
        made = Made(spark, lived, lake)
        wrong = {table: made.wrong(table) for table in [*build.SILVER, *build.GOLD]}
    assert not any(wrong.values()), wrong
