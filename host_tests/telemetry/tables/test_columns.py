"""The reference has what the schemas say, and says something of every column."""

from __future__ import annotations

from slotmq_tools.telemetry import columns
from slotmq_tools.telemetry.schemas import ALL


def test_the_page_is_made_from_the_schemas() -> None:
    assert columns.PAGE.read_text() == columns.page()


def test_no_text_is_left_over() -> None:
    names = {field.name for table in ALL for field in table.schema}
    names |= {f"{table.name}.{field.name}" for table in ALL for field in table.schema}
    assert columns.TEXTS.keys() <= names
