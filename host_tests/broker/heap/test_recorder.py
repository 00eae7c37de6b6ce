"""A Pico W with the recorder and the journal, and 1.6 KB less for messages, starts, and has 20 KB
of heap free."""

import pytest

from slotmq_dev.heap.measure import free_with_recorder

KB = 1024


def test_the_free_heap_with_journal_and_recorder(
    capsys: pytest.CaptureFixture[str],
) -> None:
    free = free_with_recorder("RPI_PICO_W")
    with capsys.disabled():
        print(f"\nRPI_PICO_W: {free:,} bytes free with persistence and record")
    assert free >= 20 * KB
