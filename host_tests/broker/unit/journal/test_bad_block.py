"""A block of the region that cannot be written any more: the journal goes round it."""

import unittest

from fakes import World
from full_media import Flash
from journal_case import RESUMED, JournalCase
from media import Life, fill, looked_at
from packets import PUBACK, ack, publish, subscribe

from slotmq import Broker, Limits, Settings
from slotmq.journal.location import snapshot_bytes
from slotmq.journal.medium_flash import FlashMedium
from slotmq.journal.restore import restore

BLOCKS, SIZE = 8, 1024
DATA = SIZE - 256
SMALL = {
    "sessions": 4,
    "subscriptions": 8,
    "deliveries": 20,
    "messages": 20,
    "message_bytes": 4000,
}
EIO = 5
ALL = 99


class Worn(Flash):
    """Some blocks can no more be erased, or no more be programmed."""

    def __init__(self, blocks, size):
        super().__init__(blocks, size)
        self.bad = self.dead = -1  # ALL: every one
        self.row = ()  # more that are bad
        self.met = 0

    def ioctl(self, op, block):
        if op == 6 and (self.bad in (block, ALL) or block in self.row):
            self.met += 1
            return -EIO
        return super().ioctl(op, block)

    def writeblocks(self, block, buf, off=0):
        if block == self.dead:
            return EIO
        return super().writeblocks(block, buf, off)


class TestMedium(unittest.TestCase):
    def setUp(self):
        self.device = Worn(BLOCKS, SIZE)
        self.medium = FlashMedium(self.device, 2 * DATA)
        self.life = Life(self.medium)
        self.life.compact(DATA + 10)  # blocks 0 and 1

    def fails(self, n):
        with self.assertRaises(OSError) as caught:
            self.medium.begin(2)
            fill(self.medium, bytearray(), n)
            self.medium.switch()
        return caught.exception.errno

    def found(self):
        looked_at(
            self, FlashMedium(self.device, 2 * DATA), [(self.life.generation, self.life.synced)]
        )

    def test_the_next_generation_begins_behind_it(self):
        for bad, size in ((2, 10), (3, DATA + 10), (4, 2 * DATA + 10)):
            for how in ("bad", "dead"):
                with self.subTest(bad=bad, how=how):
                    self.setUp()
                    setattr(self.device, how, bad)
                    self.assertEqual(self.fails(size), EIO)
                    self.found()
                    self.life.compact(size)
                    self.assertEqual(self.medium.first, bad + 1)
                    self.found()

    def test_where_the_current_one_met_it_too(self):
        for how in ("bad", "dead"):
            self.setUp()
            setattr(self.device, how, 2)
            with self.assertRaises(OSError):
                self.medium.append(bytes(DATA), 0, DATA)
            self.life.compact(DATA + 10)
            self.assertEqual(self.medium.first, 3)
            self.found()

    def test_a_lack_of_room_is_no_bad_block(self):
        for _ in range(3):
            self.assertEqual(self.fails(BLOCKS * DATA), 28)
            self.assertEqual(self.medium.base, 2)

    def test_none_of_the_current_ones_blocks_is_ever_taken(self):
        self.device.bad = ALL
        for turn in range(3 * BLOCKS):
            self.assertEqual(self.fails(10), EIO)
            self.assertEqual(self.medium.base, 2 + turn % (BLOCKS - 2))
        self.found()

    def test_what_is_left_behind_it_is_its_room(self):
        self.device.bad = 4
        self.assertEqual(self.fails(2 * DATA + 10), EIO)
        self.medium.begin(3)
        self.assertEqual(self.medium.space, 3 * DATA)  # blocks 5 to 7


class TestBroker(JournalCase):
    """Each block in turn: what was acknowledged is there, and all goes on."""

    SNAPSHOT = snapshot_bytes(Limits(**SMALL))

    def setUp(self):
        self.device = Worn(16, 4096)
        super().setUp()

    def start(self):
        self.broker = Broker(Limits(**SMALL), Settings(sys_interval=0))
        self.world = World(self.broker)
        self.medium = FlashMedium(self.device, self.SNAPSHOT)
        restore(self.broker, self.medium, self.said.append)

    def again(self):
        self.start()
        self.assertEqual(self.said, [])
        self.reader = self.client("reader", RESUMED, clean=False)
        self.publisher = self.client("publisher")

    def say(self, n):
        self.publisher.send(publish("t/a", b"x" * 200, 1, n))
        self.world.turn(3)
        if self.publisher.packets() != [ack(PUBACK, n)]:
            self.world.turn(15, ms=100)  # until it tries again
            self.assertEqual(self.publisher.packets(), [ack(PUBACK, n)])
        self.reader.answer()
        self.world.turn(2)

    def again_and_subscribed(self):
        reader = self.client("reader", clean=False)
        self.ask(reader, subscribe(1, "t/#", 1), b"\x90\x03\0\1\1")
        self.again()

    def test_all_is_acknowledged(self):
        self.again_and_subscribed()
        for bad in range(16):
            self.device.bad, self.device.met = bad, 0
            self.again()
            self.again()
            n = 0
            while not self.device.met:
                n += 1
                self.say(n)
            self.assertTrue(self.broker.journal.whole)
            self.assertFalse(self.broker.journal_full)

    def test_eight_in_a_row_cost_a_second_each(self):
        self.again_and_subscribed()
        self.broker.compact()  # SIGUSR1, which changes nothing of that
        first = self.medium.first + self.medium.length
        self.device.row = [(first + n) % 16 for n in range(8)]
        self.assertFalse(self.broker.journal.compacted())
        self.publisher.send(publish("t/a", b"x", 1, 1))
        self.world.turn(3)
        self.assertEqual(self.publisher.packets(), [])
        self.world.turn(85, ms=100)
        self.assertEqual(self.publisher.packets(), [ack(PUBACK, 1)])

    def starts_with(self, retained, said):
        """What cannot be erased is said once, and a start goes on behind it."""
        self.start()
        self.assertEqual(self.said, [said])
        self.assertEqual(self.broker.retained.names.count(), retained)
        self.assertEqual(self.device.met, 2)  # set aside; and for the new generation
        self.said = []
        self.start()
        self.assertEqual(self.said, [])
        self.assertEqual(self.broker.retained.names.count(), retained)

    def retain_two(self):
        """A generation with one topic, and behind it one with two."""
        self.broker.publish("a", "kept", 0, True)
        self.broker.journal.commit()
        self.broker.journal.compacted()
        self.broker.publish("b", "kept", 0, True)
        self.broker.journal.commit()
        return self.medium.first, self.medium.first + self.medium.length

    def test_a_start_leaves_a_damaged_generation_where_it_is(self):
        first, _ = self.retain_two()
        at = first * 4096 + 256 + 12
        self.device.data[at : at + 8] = bytes(8)
        self.device.bad = first
        said = f"generation 2 is damaged; kept as block {first}, which cannot be erased"
        self.starts_with(1, said)

    def test_and_what_has_rotted_behind_the_newest(self):
        _, behind = self.retain_two()
        page = bytearray(self.device.data[:256])
        for at in (10, 138):  # of both headers
            page[at] ^= 1
        self.device.data[behind * 4096 : behind * 4096 + 256] = page
        self.device.bad = behind
        kept = f"kept as block {behind}, which cannot be erased"
        self.starts_with(2, f"what was newer has rotted; {kept}; it goes on with generation 2")

    def test_a_start_tries_every_block_before_it_ends(self):
        self.device.bad = ALL
        with self.assertRaises(OSError) as caught:
            self.start()
        self.assertEqual(caught.exception.errno, EIO)
        self.assertEqual(self.device.met, 16)
        self.device.bad = -1
        self.start()


del JournalCase
