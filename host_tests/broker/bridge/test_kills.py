"""Two brokers with a bridge are killed while they pass messages, see campaign.py."""

from pathlib import Path

import pytest

from .campaign import campaign


@pytest.mark.nightly
@pytest.mark.parametrize(("near", "far"), [("cpython", "micropython"), ("micropython", "cpython")])
def test_kills(near: str, far: str, tmp_path: Path) -> None:
    found = campaign(tmp_path, 2000, 7, near, far)
    assert found["kills"] >= 2
