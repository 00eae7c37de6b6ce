"""How much heap a journal takes: what the budget claims, and a bounded amount at a start."""

import gc
import sys
import unittest

from fakes import World
from media import Flash
from memory_medium import MemoryMedium
from packets import PUBACK, PUBREC, publish, subscribe

from slotmq import Broker, Limits, Settings, app
from slotmq.journal.location import snapshot_bytes
from slotmq.journal.medium_file import FileMedium
from slotmq.journal.medium_flash import FlashMedium
from slotmq.journal.restore import restore
from slotmq.journal.writer import Journal
from slotmq.platform.runtime import MICROPYTHON


def used():
    gc.collect()
    return gc.mem_alloc() if MICROPYTHON else 0


class TestBudget(unittest.TestCase):
    def test_the_claim_is_what_a_journal_takes_or_slightly_more(self):
        for limits in ({}, {"deliveries": 400}, {"received": 90}, {"client_id_bytes": 512}):
            limits = Limits(**limits)
            broker = Broker(limits, Settings(sys_interval=0))
            device = Flash(24, 4096)
            for make in (lambda: FlashMedium(device, 9999), lambda: FileMedium("x", 9999, 99999)):  # noqa: B023
                before = used()
                journal = Journal(broker, make(), 0)
                taken = used() - before
                name, claim, _ = app.borrow("config.budget", "journal", limits)
                self.assertEqual(name, "journal")
                self.assertLessEqual(taken, claim)
                if MICROPYTHON and type(journal.medium) is FlashMedium:
                    self.assertGreater(taken, claim * 9 // 10)


if MICROPYTHON:

    class TestForget(unittest.TestCase):
        def test_the_code_that_only_a_start_needs_can_be_freed(self):
            for name in ("slotmq.journal.medium_file", "slotmq.journal.medium_flash"):
                loaded = sys.modules.pop(name)  # other tests need it as it is
                __import__(name)
                module = sys.modules[name]
                sys.modules[name] = loaded
                before = used()
                module.forget()
                self.assertGreater(before - used(), 300)


class TestFullJournal(unittest.TestCase):
    LIMITS = Limits(message_bytes=15040)  # the others as on a Pico W

    FILTER = "y" * 249 + "/%d%d"  # the longest possible; filters share levels
    TEXT = 256 - 2  # topic and payload of a message that fills its blocks

    def fill(self):
        """A broker whose tables are full, with the longest rows."""
        medium = MemoryMedium()
        broker = Broker(self.LIMITS, Settings(sys_interval=0))
        broker.settings.when_full["sessions"] = "drop_oldest"  # all may be persistent
        broker.settings.max_session_share = broker.settings.max_offline_share = 100
        broker.apply_settings()
        world = World(broker)
        restore(broker, medium, print)
        for session in range(self.LIMITS.sessions - 1):
            client = world.client(f"{session}" * self.LIMITS.client_id_bytes, clean=False)
            for n in range(6):
                client.send(subscribe(1 + n, self.FILTER % (session if n else 9, n), 1))
                world.turn(2)
            self.hold_ids(world, client)
            client.leave()
            world.turn(3)
        publisher = world.client("p" * self.LIMITS.client_id_bytes, clean=False)
        self.hold_ids(world, publisher)
        for n in range(30):
            size = self.TEXT - 4 - self.LIMITS.message_block * (n < 5)  # 235 blocks in all
            publisher.send(publish(f"r/{n}", b"r" * size, retain=True))
            topic = self.FILTER % ((n % 7, 1 + n % 5) if n > 6 else (9, 0))
            publisher.send(publish(topic, b"m", 1, 1 + n))
            world.turn(3)
        kinds = [one[0] for one in publisher.packets()]
        ids = self.LIMITS.received
        self.assertEqual((kinds.count(PUBREC), kinds.count(PUBACK)), (ids, 30))
        self.assertEqual(broker.messages.count[0], 60)
        self.assertEqual(broker.deliveries.count[0], 7 * 7 + 23)
        self.assertEqual(broker.sessions.names.count(), self.LIMITS.sessions)
        self.assertEqual(broker.subscriptions.count, 42)
        broker.compact()
        return medium, broker, world, publisher

    def hold_ids(self, world, client):
        for n in range(self.LIMITS.received):
            client.send(publish("nobody", b"", 2, 100 + n))
            world.turn(2)

    def grow(self, medium, broker, world, publisher, payload=b""):
        """The longest journal: the next commit would compact it."""
        medium.capacity = 1_300_000  # like a file's
        longest = min(medium.capacity, 65536 + 4 * broker.journal.snapshot)
        n = 0
        while medium.end <= longest:
            publisher.send(publish(f"r/{n % 30}", payload or b"%d" % n, retain=True))
            world.turn()
            n += 1
        self.assertEqual(medium.current, 2)
        self.assertGreater(medium.end, 150_000)
        return medium.end

    def test_the_space_for_a_generation_is_that_of_the_longest_rows(self):
        """By FORMAT.md; a record has at most 9 bytes beside its body."""
        rows = 8 * (9 + 25 + 64) + 8 * (9 + 2 + 4 * 32)  # sessions, their packet ids
        rows += 48 * (9 + 13 + 32 + 256)  # subscriptions with share name and filter
        rows += 64 * (9 + 13) + 15040 + 80 * (9 + 13) + 32 * (9 + 4)  # messages to retained
        self.assertEqual(snapshot_bytes(self.LIMITS), rows + 14 + 5 * 10)  # HEAD, COMMITs
        medium, _, _, _ = self.fill()
        self.assertLess(rows * 8 // 10, medium.end)
        self.assertLess(medium.end, rows)

    def test_a_start_reads_it_twice_in_pieces_of_512_bytes(self):
        medium, broker, world, publisher = self.fill()
        size = self.grow(medium, broker, world, publisher)
        counting = Counting(medium)
        again = Broker(self.LIMITS, Settings(sys_interval=0))
        journal = restore(again, counting, print)
        journal.close()
        self.assertEqual(again.messages.count[0], broker.messages.count[0])
        self.assertEqual(again.deliveries.count[0], broker.deliveries.count[0])
        self.assertEqual(again.subscriptions.count, broker.subscriptions.count)
        self.assertEqual(counting.size, size)
        # Twice from the beginning to the end, and each row that counts once more.
        self.assertLess(counting.bytes, 6 * size)
        self.assertLess(counting.reads, 6 * size // 400)
        self.assertEqual(counting.largest, 512)


class Counting(MemoryMedium):
    """Counts what is read."""

    def __init__(self, medium):
        MemoryMedium.__init__(self, durable=medium.durable)
        self.bytes = self.reads = self.largest = 0
        self.size = len(self.durable[self.current])

    def readinto(self, at, buf, n):
        self.bytes += n
        self.reads += 1
        self.largest = max(self.largest, n)
        return MemoryMedium.readinto(self, at, buf, n)
