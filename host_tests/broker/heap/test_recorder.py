"""With the recorder and the journal on a Pico W starts, and has 20 KB free."""

import pytest

from slotmq_tools.dev.heap.measure import free_recording

KB = 1024


def test_with_journal_and_recorder_there_is_heap_to_spare(
    capsys: pytest.CaptureFixture[str],
) -> None:
    free = free_recording("RPI_PICO_W")
    with capsys.disabled():
        print(f"\nRPI_PICO_W: {free:,} bytes free with persistence and record")
    assert free >= 20 * KB
