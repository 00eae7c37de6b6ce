"""A start leaves as much heap for the tables as board.json states."""

import pytest

from slotmq_dev.heap import tables_bytes
from slotmq_dev.heap.measure import limits_of
from slotmq_tools import boards

# Two runs differ by the places of names and paths.
NEAR = 0.02


@pytest.mark.parametrize("name", [name for name in boards.names() if name != "HOST"])
def test_it_is_measured(name: str) -> None:
    said = boards.load(name).tables_bytes
    assert list(said) == list(tables_bytes.CONFIGURATIONS)
    found = tables_bytes.measure(name)
    for way, size in said.items():
        assert found[way] == pytest.approx(size, rel=NEAR), (
            f"{way}: slotmq_dev.heap --write-boards"
        )
    assert limits_of(name).ram_bytes() < said[""], "the preset does not start"
