"""The tables that Spark built of a campaign, and how they differ from the truth."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from slotmq_tools.telemetry import build
from slotmq_tools.telemetry.lake import Lake

from .campaign import Campaign
from .gold_truth import KEYS
from .tables import differences, keyed, plain, rows


@dataclass
class Made:
    """A campaign and its tables."""

    spark: SparkSession
    campaign: Campaign
    lake: Lake

    def silver(self, table: str) -> DataFrame:
        return build.read(self.spark, self.lake, "silver", table, build.SILVER[table])

    def gold(self, table: str) -> DataFrame:
        return build.read(self.spark, self.lake, "gold", table, build.GOLD[table])

    def wrong(self, table: str) -> list[str]:
        """The differences of a table of silver or gold."""
        right = self.campaign.all(table)
        if table in KEYS:
            names = KEYS[table]
            return differences(keyed(plain(self.gold(table)), names), keyed(right, names))
        return differences(rows(self.silver(table)), keyed(right))
