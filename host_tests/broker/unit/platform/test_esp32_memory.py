"""An ESP32's memory: what the heap takes, and what a start leaves for Wi-Fi."""

import sys
import unittest

import board_case  # noqa: F401 - the folder of the ports' fakes
import network_esp32
from network_esp32 import Gc, Idf, Network

from slotmq.platform import esp32_memory

KB = 1024
FIRST = 56 * KB  # MICROPY_GC_INITIAL_HEAP_SIZE
CODE = 78 * KB  # broker and firmware
PSRAM = 4096 * KB
SPARE = 12 * KB  # of start.py, and what is too small a piece


class TestEsp32Memory(unittest.TestCase):
    def start(self, *free, first=FIRST):
        """A board at its prompt."""
        self.system = Idf(first, *(free or network_esp32.FREE))
        self.gc = Gc(self.system, first)
        self.kept = esp32_memory.gc, sys.modules.get("esp32")
        esp32_memory.gc = self.gc
        sys.modules["esp32"] = self.system
        self.network = Network(idf=self.system)

    def tearDown(self):
        esp32_memory.gc = self.kept[0]
        del sys.modules["esp32"]

    def join(self):
        self.nic = self.network.WLAN(self.network.STA_IF)
        self.nic.active(True)
        return self.nic

    def make(self, size, piece=2 * KB):
        for _ in range(size // piece):
            self.gc.alloc(piece)

    def test_mem_free_counts_memory_that_wifi_needs(self):
        """If the tables take all of mem_free(), no packet can be sent."""
        self.start()
        self.make(CODE)
        nic = self.join()
        nic.send(4)
        promised = self.gc.mem_free()
        self.make(promised - 8 * KB)
        with self.assertRaises(OSError) as failed:
            nic.send(10)
        self.assertEqual(failed.exception.args[0], 105)

    def test_tables_of_the_reported_size_leave_memory_for_wifi(self):
        for more in range(0, 60 * KB, 3 * KB):
            self.start(more, *network_esp32.FREE)
            nic = self.join()
            self.make(CODE)
            promised = esp32_memory.free()
            self.make(promised - SPARE)
            nic.send(8)
            self.tearDown()
        self.start()

    def test_wifi_has_to_start_before_the_tables(self):
        self.start()
        self.make(CODE + 60 * KB)
        with self.assertRaises(RuntimeError):
            self.join()
        self.tearDown()
        self.start()
        self.join()

    def test_the_heap_may_double_once(self):
        self.start(60 * KB)
        self.assertTrue(esp32_memory.free() > 100 * KB)
        self.make(CODE)
        self.assertTrue(esp32_memory.free() < FIRST)

    def test_with_psram_the_heap_has_nearly_all_of_it(self):
        self.start(PSRAM, 14656, 90 * KB, first=64 * KB)
        nic = self.join()
        self.make(CODE)
        self.assertTrue(esp32_memory.free() > PSRAM - 400 * KB)
        self.make(PSRAM - 500 * KB, 16 * KB)
        nic.send(8)

    def test_the_start_reports_what_is_left(self):
        self.start(20 * KB)
        expected = "slotmq: 20480 bytes are left for Wi-Fi and its packets, 20480 in one piece"
        self.assertEqual(esp32_memory.report(), expected)
        self.system.take(8 * KB)
        self.assertTrue(
            esp32_memory.report().endswith("12288 in one piece; that is little: lower a limit")
        )


class TestHeapCheck(unittest.TestCase):
    def test_it_does_not_count_memory_that_wifi_needs(self):
        from slotmq.app import start

        class Esp32:
            platform = "esp32"

        kept = start.sys, start.borrow, start.MICROPYTHON, start._heap, start.gc
        start.gc = Gc(Idf(FIRST), FIRST - 64)
        start._heap = lambda: "heap 1 KB"
        start.sys = Esp32
        start.borrow = lambda _, function, *words: 30000 if function == "free" else "advice"
        start.MICROPYTHON = True
        try:
            app = type("App", (), {"limits": None, "settings": None})
            start._check_heap([("messages", 10000, "")], 10240, app, None)
            with self.assertRaises(MemoryError) as refused:
                start._check_heap([("messages", 20000, "")], 10240, app, None)
            self.assertTrue("and 19760 are left for them" in str(refused.exception))
        finally:
            start.sys, start.borrow, start.MICROPYTHON, start._heap, start.gc = kept
