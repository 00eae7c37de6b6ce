"""Each planted fault has its text in the broker; whether it is found is seen in `make nightly`."""

from ..broker import test_planted_attacks as of_attackers
from ..sim.planted import FAULTS, LIB, with_fault


def test_each_text_is_there_once() -> None:
    for fault in FAULTS + tuple(each.fault for each in of_attackers.FAULTS):
        assert with_fault(fault) != (LIB / fault.file).read_text(), fault.name
