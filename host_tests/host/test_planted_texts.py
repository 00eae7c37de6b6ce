"""Each planted fault of the simulator has its text in the broker; whether it is found is seen in
`make nightly`."""

from ..sim.planted import FAULTS, LIB, with_fault


def test_each_text_is_there_once() -> None:
    for fault in FAULTS:
        assert with_fault(fault) != (LIB / fault.file).read_text(), fault.name
