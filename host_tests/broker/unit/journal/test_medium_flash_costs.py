"""What a medium in raw flash costs: wear, and heap."""

import unittest

from fakes import lock
from media import Flash, Life, Quiet, text

from slotmq.journal.medium_flash import FlashMedium
from slotmq.platform import heap
from slotmq.platform.runtime import MICROPYTHON

micropython = __import__("micropython") if MICROPYTHON else None

BLOCKS, SIZE = 8, 1024
DATA = SIZE - 256  # bytes of the journal in a block
SNAPSHOT = 2 * DATA


class TestWear(unittest.TestCase):
    def setUp(self):
        self.device = Flash(BLOCKS, SIZE)
        self.medium = FlashMedium(self.device, SNAPSHOT)

    def test_all_blocks_are_erased_about_equally_often(self):
        life = Life(self.medium)
        for generation in range(100):
            life.compact(1 + generation * 613 % SNAPSHOT)
            for _ in range(generation % 5):
                life.append(300)
            life.compact(1000, give_up=generation % 3 == 0)
        erases = self.device.erases
        self.assertLessEqual(max(erases), min(erases) + 30)
        self.assertEqual(self.medium.erased, sum(erases) * SIZE)
        self.assertEqual(self.medium.written, self.device.programmed)

    def test_a_synced_append_of_100_bytes(self):
        """On 64 blocks of 4 KB, with compactions: these figures are in FORMAT.md."""
        medium = FlashMedium(Flash(64, 4096), 8000)
        medium.begin(1)
        medium.switch()
        for n in range(4000):
            if medium.end + 256 > medium.capacity:
                medium.begin(n)
                medium.append(bytes(8000), 0, 8000)
                medium.switch()
            medium.append(bytes(100), 0, 100)
            medium.sync()
        for figure in (medium.written, medium.erased):
            self.assertLess(abs(figure // 4000 - 283), 4)


def errno_of(medium, record):
    try:
        medium.append(record, 0, 100)
    except OSError as error:
        return error.errno
    return 0


class TestHeap(unittest.TestCase):
    def test_nothing_is_allocated(self):
        medium = FlashMedium(Quiet(BLOCKS, SIZE), SNAPSHOT)
        medium.begin(1)
        medium.switch()
        record = text(1, 100)
        full = 0
        if hasattr(micropython, "alloc_emergency_exception_buf"):
            micropython.alloc_emergency_exception_buf(100)  # like the poller
        lock()
        try:
            for _ in range(7):
                medium.append(record, 0, 100)
                medium.append(record, 50, 50)
                medium.sync()
            medium.append(record, 0, 100)
            while full != 28:
                full = errno_of(medium, record)
        finally:
            heap.unlock()
        self.assertGreater(medium.end, 5 * DATA)
