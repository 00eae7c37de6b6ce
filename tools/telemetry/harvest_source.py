"""`spark.read.format("slotmq")` and `readStream`: reads the frames of a harvest folder.

Options: `path`, the folder; `maxBundlesPerTrigger` (stream only). Rows are those of the decoder;
bad frames have a `reason`. The offset of a stream is the number of lines that it has read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from ..errors import ToolError
from ..harvest.manifest import Line
from . import manifest
from .decode import SCHEMA, frames_of
from .folder import Folder

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadMaxFiles,
        SupportsTriggerAvailableNow,
    )

    HAS_LIMITS = True
except ImportError:  # before 4.2
    HAS_LIMITS, SupportsTriggerAvailableNow = False, object  # type: ignore[assignment, misc]

NAME = "slotmq"
FRAMES = from_arrow_schema(SCHEMA)


def _work(lines: Sequence[Line]) -> Sequence[InputPartition]:
    return [InputPartition(parts) for parts in manifest.parts(lines)]


def _read(folder: Folder, partition: InputPartition) -> Iterator[Any]:
    # Spark asks for a partition of nothing where there are none.
    for part in partition.value or []:
        yield from frames_of(folder, part)


class _Reader(DataSourceReader):
    def __init__(self, options: dict[str, str]) -> None:
        self._folder = Folder(options["path"])

    def partitions(self) -> Sequence[InputPartition]:
        return _work(manifest.read(self._folder))

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return _read(self._folder, partition)


class _StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: dict[str, str]) -> None:
        self._folder = Folder(options["path"])
        limit = options.get("maxbundlespertrigger")
        self._limit = int(limit) if limit else None
        if self._limit and not HAS_LIMITS:
            raise ToolError("maxBundlesPerTrigger needs Spark 4.2")
        self._target: int | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"line": 0}

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        return ReadMaxFiles(self._limit) if self._limit else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = manifest.count(self._folder)

    def latestOffset(  # noqa: N802
        self, start: dict[str, int] | None = None, limit: Any = None
    ) -> dict[str, int]:
        end = manifest.count(self._folder) if self._target is None else self._target
        if start is None:  # as Spark before 4.2 asks
            return {"line": end}
        if isinstance(limit, ReadMaxFiles):
            end = min(end, start["line"] + limit.max_files)
        return {"line": max(start["line"], end)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return _work(manifest.read(self._folder, start["line"], end["line"]))

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return _read(self._folder, partition)


class HarvestSource(DataSource):
    """The format `slotmq`."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        return FRAMES

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Reader({key.lower(): value for key, value in self.options.items()})

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        return _StreamReader({key.lower(): value for key, value in self.options.items()})


def register(spark: SparkSession) -> None:
    """From now on the session knows the format."""
    spark.dataSource.register(HarvestSource)
