"""A watched broker for each file of tests."""

from collections.abc import Iterator

import pytest

from .watched import Watched


@pytest.fixture(scope="module")
def watched() -> Iterator[Watched]:
    with Watched() as process:
        yield process
