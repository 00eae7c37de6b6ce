"""The reference has what the schemas say, and says something of every column."""

from __future__ import annotations

from slotmq_telemetry.columns import COLUMNS
from slotmq_telemetry.schemas import ALL, PAGE, page


def test_the_page_is_made_from_the_schemas() -> None:
    assert PAGE.read_text() == page()


def test_no_text_is_left_over() -> None:
    names = {field.name for table in ALL for field in table.schema}
    names |= {f"{table.name}.{field.name}" for table in ALL for field in table.schema}
    assert COLUMNS.keys() <= names
