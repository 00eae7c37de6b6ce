"""Planted faults; whether they are found is seen in `make nightly`."""

import ast

import pytest

from host_tests.sim.test_planted import FAULTS
from slotmq_dev.mutants import LIB, mutant, sites, with_body


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault[0])
def test_each_function_is_there_once(fault: tuple[str, str, str, str]) -> None:
    _, file, function, body = fault
    assert ast.unparse(ast.parse((LIB / file).read_text())) != with_body(file, function, body)


def test_each_place_has_another_fault() -> None:
    places = list(sites("delivery/retain.py"))
    texts = {mutant(place)[0] for place in places}
    assert len(texts) == len(places) > 10
    for text in texts:
        compile(text, "retain.py", "exec")
