"""The recorder writes the golden segments in host_tests/support/golden/record."""

from slotmq_dev import golden


def test_the_recorder_writes_the_golden_segments() -> None:
    made = golden.make()
    there = {path.name: path.read_bytes() for path in golden.FOLDER.iterdir()}
    assert len(there) > 20
    assert made == there, "python -m slotmq_dev.golden"
