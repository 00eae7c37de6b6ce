"""The coverage of the standards' statements, and the tool that checks it."""

import re
import subprocess
import sys

import pytest

from slotmq_dev.spec import statements
from slotmq_dev.spec.coverage import Coverage
from slotmq_dev.spec.statements import Statement


def statements_with(reason):
    """Three, the second with a reason why no test names it."""
    return {
        "A-1": Statement("A-1", "server", "wire", "the first"),
        "A-2": Statement("A-2", "both", "wire", "the second", reason),
        "A-3": Statement("A-3", "client", "internal", "the client's own"),
    }


def test_every_statement_that_binds_a_server_has_a_test_or_a_reason():
    command = [sys.executable, "-m", "slotmq_dev.spec", "--quiet"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("tests", "reason", "fault"),
    [
        ({"A-1": ["t"], "A-2": ["t"]}, "", None),
        ({"A-1": ["t"]}, "why", None),
        ({"A-1": ["t"], "A-2": ["t"], "A-3": ["t"]}, "", None),
        ({"A-1": ["t"]}, "", "A-2: no test and no reason: the second"),
        ({"A-1": ["t"], "A-2": ["t"]}, "why", "A-2: a reason not to test it, but t does"),
        ({"A-1": ["t"], "A-2": ["t"], "B": ["t"]}, "", "B: no such statement, but t names it"),
    ],
)
def test_what_the_coverage_finds_wrong(tests, reason, fault):
    found = list(Coverage("0", statements_with(reason), tests).faults())
    assert found == ([fault] if fault else [])


def test_the_table_shows_tests_and_reasons():
    coverage = Coverage("0", statements_with("why"), {"A-1": ["test_one", "test_two"]})
    assert list(coverage.table()) == [
        "A-1  the first",
        "    test_one",
        "    test_two",
        "A-2  the second",
        "    not tested: why",
    ]
    assert re.findall(r"\d+", coverage.count()) == ["0", "2", "1", "1"]  # tests, reasons why not


@pytest.mark.parametrize("version", statements.versions())
def test_the_tables_are_well_formed(version):
    found = statements.load(version)
    assert all(name.startswith("MQTT-") and row.text for name, row in found.items())
    assert {row.binds for row in found.values()} <= {"client", "server", "both"}
    assert {row.kind for row in found.values()} <= {"wire", "websocket", "internal"}
    assert all(row.reason[-1:] in ("", ".") for row in found.values())


def test_mqtt_3_1_1_is_complete():
    found = statements.load("3.1.1")
    assert len(found) == 141
    assert sum(row.binds_a_server for row in found.values()) == 131


def test_mqtt_5_0_is_complete():
    found = statements.load("5.0")
    assert len(found) == 251
    assert sum(row.binds_a_server for row in found.values()) == 240
