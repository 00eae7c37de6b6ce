"""`spark.read.format("slotmq")` and `readStream`: reads the frames of a harvest folder.

The option `path` is the folder. Rows are those of the decoder; bad frames have a `reason`. The
offset of a stream is the number of lines that it has read: Spark is offered what lies in the
folder, whatever becomes of a board.
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

from . import manifest
from .decode import SCHEMA, frames_of
from .folder import Folder

NAME = "slotmq"
FRAMES = from_arrow_schema(SCHEMA)


def _work(folder: Folder, first: int = 0, last: int | None = None) -> Sequence[InputPartition]:
    with manifest.opened(folder) as found:
        lines = found.filled(found.lines(first, last))
    return [InputPartition(parts) for parts in manifest.parts(lines)]


def _read(folder: Folder, partition: InputPartition) -> Iterator[Any]:
    # Spark asks for a partition of nothing where there are none.
    for part in partition.value or []:
        yield from frames_of(folder, part)


class _Reader(DataSourceReader):
    def __init__(self, options: dict[str, str]) -> None:
        self._folder = Folder(options["path"])

    def partitions(self) -> Sequence[InputPartition]:
        return _work(self._folder)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return _read(self._folder, partition)


class _StreamReader(DataSourceStreamReader):
    def __init__(self, options: dict[str, str]) -> None:
        self._folder = Folder(options["path"])

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"line": 0}

    def latestOffset(self) -> dict[str, int]:  # type: ignore[override]  # noqa: N802
        with manifest.opened(self._folder) as lines:
            return {"line": lines.count()}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return _work(self._folder, start["line"], end["line"])

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
