"""The one cluster that these tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .cluster import Cluster


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    yield made
    made.stop()
