"""Medians, ratios, targets, and their tables."""

import pytest

from slotmq_dev.bench.results import Cell, Results, Row, ratio
from slotmq_dev.bench.tables import all_tables, failures, number
from slotmq_dev.bench.targets import TARGETS, Target
from slotmq_dev.bench.workloads import WORKLOADS


def cell(*costs: float) -> Cell:
    return Cell([{"cpu_us": cost} for cost in costs])


@pytest.fixture
def row() -> Row:
    return {"slotmq-cpython": cell(2, 3, 10), "mosquitto": cell(4, 4, 5)}


def test_a_failed_broker_has_no_median() -> None:
    assert cell(1, 9, 2).median("cpu_us") == 2
    assert cell(1).median("p50_us") is None
    assert Cell([{"cpu_us": 1}], "lost a message").median("cpu_us") is None


def test_a_ratio_is_the_median_of_the_rounds(row: Row) -> None:
    assert ratio(row, "cpu_us", "slotmq-cpython", "mosquitto") == 0.75
    assert ratio(row, "cpu_us", "slotmq-cpython", "amqtt") is None
    assert ratio(row, "p50_us", "slotmq-cpython", "mosquitto") is None


def test_a_target_is_a_ratio_or_a_figure(row: Row) -> None:
    results: Results = {"qos0": row, "non-matching": {"mosquitto": Cell([{"growth_1000": 1.1}])}}
    assert Target("qos0", "mosquitto", 1.0).value(results, "slotmq-cpython") == 0.75
    growth = Target("non-matching", None, 1.2, "growth_1000")
    assert growth.value(results, "mosquitto") == 1.1
    assert growth.value(results, "aedes") is None
    assert Target("fan-in", "mosquitto", 1.0).value(results, "slotmq-cpython") is None


def test_every_target_names_a_workload() -> None:
    assert {target.workload for target in TARGETS} <= {each.name for each in WORKLOADS}


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "-"), (0.0523, "0.05"), (9.96, "9.96"), (31.04, "31.0"), (1e4, "10,000")],
)
def test_numbers_are_short(value: float | None, shown: str) -> None:
    assert number(value) == shown


def test_tables_have_a_column_per_broker(row: Row) -> None:
    row["amqtt"] = Cell([], "it hung up")
    results: Results = {"qos0": row}
    tables = {table.title: table for table in all_tables(results)}
    cost = next(table for title, table in tables.items() if title.startswith("CPU"))
    assert cost.columns == ["workload", "slotmq-cpython", "mosquitto", "amqtt"]
    assert cost.rows == [["qos0", "3.00 (0.75)", "4.00 (1.00)", "fails"]]
    judged = {(line[0], line[2]): line[5] for line in tables["Targets"].rows}
    assert judged["qos0", "mosquitto"] == "0.75 met"
    assert failures(results) == [("qos0", "amqtt", "it hung up")]


def test_a_missed_target() -> None:
    results: Results = {"qos1": {"slotmq-cpython": cell(9), "mosquitto": cell(6)}}
    targets = next(table for table in all_tables(results) if table.title == "Targets")
    assert targets.rows[0][5] == "1.50 NOT MET"
