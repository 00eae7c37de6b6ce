"""What a journal takes of the heap: as much as the budget says, and nothing while it works."""

import gc
import unittest

from fakes import World
from full_media import Flash
from memory_medium import MemoryMedium
from packets import PUBACK, PUBREC, publish, subscribe

from slotmq import Broker, Limits, Settings, app
from slotmq.journal import Journal
from slotmq.journal_file import FileMedium
from slotmq.journal_flash import FlashMedium
from slotmq.restore import restore
from slotmq.runtime import MICROPYTHON


def used():
    gc.collect()
    return gc.mem_alloc() if MICROPYTHON else 0


class TestBudget(unittest.TestCase):
    """The claim is never less than what is taken, and hardly more."""

    def test_limits_tell_the_truth(self):
        for limits in ({}, {"deliveries": 400}, {"received": 90}, {"client_id_bytes": 512}):
            limits = Limits(**limits)
            broker = Broker(limits, Settings(sys_interval=0))
            device = Flash(24, 4096)
            for make in (lambda: FlashMedium(device, 9999), lambda: FileMedium("x", 9999, 99999)):  # noqa: B023
                before = used()
                journal = Journal(broker, make(), 0)
                taken = used() - before
                name, claim, _ = app.borrow("budget", "journal", limits)
                self.assertEqual(name, "journal")
                self.assertLessEqual(taken, claim)
                if MICROPYTHON and type(journal.medium) is FlashMedium:
                    self.assertGreater(taken, claim * 9 // 10)


class TestFull(unittest.TestCase):
    """A start with the full journal of a board: bounded in what it reads and in heap."""

    LIMITS = Limits()  # of a Pico W

    def fill(self):
        """Every table of the broker as full as clients can make it."""
        medium = MemoryMedium()
        broker = Broker(self.LIMITS, Settings(sys_interval=0))
        world = World(broker)
        restore(broker, medium, print)
        readers = [f"{n}" * 60 for n in range(self.LIMITS.sessions - 1)]
        for name in readers:
            client = world.client(name, clean=False)
            for n in range(6):
                client.send(subscribe(1 + n, f"t/{name[0]}/{n}/" + "y" * 24, 1))
                world.turn(2)
            client.leave()
            world.turn(3)
        publisher = world.client("publisher", clean=False)
        for n in range(30):
            publisher.send(publish(f"r/{n}", b"r" * 60, retain=True))
            publisher.send(publish(f"ids/{n}", b"", 2, 100 + n))
            world.turn(3)
        for n in range(60):
            name = readers[n % 7][0]
            publisher.send(publish(f"t/{name}/{n % 6}/" + "y" * 24, b"m" * 240, 1, 1 + n))
            world.turn(3)
        kinds = [one[0] for one in publisher.packets()]
        self.assertEqual((kinds.count(PUBREC), kinds.count(PUBACK)), (30, 60))
        self.assertGreater(broker.messages.count[0], 60)
        self.assertEqual(broker.sessions.names.count(), self.LIMITS.sessions)
        self.assertGreater(broker.subscriptions.count, 20)  # as many as nodes allow
        broker.compact()
        return medium, broker

    def test_a_start_reads_it_twice_and_keeps_nothing(self):
        medium, broker = self.fill()
        counting = Counting(medium)
        again = Broker(self.LIMITS, Settings(sys_interval=0))
        journal = restore(again, counting, print)
        journal.close()
        self.assertEqual(again.messages.count[0], broker.messages.count[0])
        self.assertEqual(again.deliveries.count[0], broker.deliveries.count[0])
        self.assertEqual(again.subscriptions.count, broker.subscriptions.count)
        size = counting.size
        self.assertGreater(size, 14000)
        # Twice from its beginning to its end, and once each row that counts, a window of 512
        # bytes at a time.
        self.assertLess(counting.bytes, 6 * size)
        self.assertLess(counting.reads, 6 * size // 400)
        self.assertEqual(counting.largest, 512)


class Counting(MemoryMedium):
    """Counts what is read of it; how much heap is in use meanwhile is looked at now and then."""

    def __init__(self, medium):
        MemoryMedium.__init__(self, kept=medium.kept)
        self.bytes = self.reads = self.largest = 0
        self.size = len(self.kept[self.current])

    def readinto(self, at, buf, n):
        self.bytes += n
        self.reads += 1
        self.largest = max(self.largest, n)
        return MemoryMedium.readinto(self, at, buf, n)
