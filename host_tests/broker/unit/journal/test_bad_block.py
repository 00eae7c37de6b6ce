"""A block of the region can no longer be written: the journal goes on behind it."""

from journal_case import RESUMED, JournalCase
from media import Flash, Life, MediumCase, fill, looked_at
from packets import PUBACK, ack, publish

from slotmq.journal.medium_flash import FlashMedium

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
    """Some blocks can no longer be erased, or no longer be programmed."""

    def __init__(self, blocks, size):
        super().__init__(blocks, size)
        self.unerasable = self.unwritable = -1  # a block, or ALL
        self.row = ()  # more that cannot be erased
        self.attempts = 0  # to erase one of them

    def ioctl(self, op, block):
        if op == 6 and (self.unerasable in (block, ALL) or block in self.row):
            self.attempts += 1
            return -EIO
        return super().ioctl(op, block)

    def writeblocks(self, block, buf, off=0):
        if block == self.unwritable:
            return EIO
        return super().writeblocks(block, buf, off)


class TestMedium(MediumCase):
    def setUp(self):
        self.device = Worn(BLOCKS, SIZE)
        self.medium = FlashMedium(self.device, 2 * DATA)
        self.life = Life(self.medium)
        self.life.compact(DATA + 10)  # blocks 0 and 1

    def compaction_fails(self, n):
        """The errno of a compaction to n bytes."""

        def compact():
            self.medium.begin(2)
            fill(self.medium, bytearray(), n)
            self.medium.switch()

        return self.refused(compact)

    def check(self):
        medium = FlashMedium(self.device, 2 * DATA)
        looked_at(self, medium, [(self.life.generation, self.life.synced)])

    def test_the_next_generation_begins_behind_it(self):
        for bad, size in ((2, 10), (3, DATA + 10), (4, 2 * DATA + 10)):
            for fault in ("unerasable", "unwritable"):
                with self.subTest(bad=bad, fault=fault):
                    self.setUp()
                    setattr(self.device, fault, bad)
                    self.assertEqual(self.compaction_fails(size), EIO)
                    self.check()
                    self.life.compact(size)
                    self.assertEqual(self.medium.first, bad + 1)
                    self.check()

    def test_the_next_generation_avoids_a_block_where_the_current_one_failed(self):
        for fault in ("unerasable", "unwritable"):
            self.setUp()
            setattr(self.device, fault, 2)
            self.assertEqual(self.refused(self.medium.append, bytes(DATA), 0, DATA), EIO)
            self.life.compact(DATA + 10)
            self.assertEqual(self.medium.first, 3)
            self.check()

    def test_a_lack_of_space_is_not_taken_for_a_bad_block(self):
        for _ in range(3):
            self.assertEqual(self.compaction_fails(BLOCKS * DATA), 28)
            self.assertEqual(self.medium.base, 2)

    def test_attempts_never_use_a_block_of_the_current_generation(self):
        self.device.unerasable = ALL
        for turn in range(3 * BLOCKS):
            self.assertEqual(self.compaction_fails(10), EIO)
            self.assertEqual(self.medium.base, 2 + turn % (BLOCKS - 2))
        self.check()

    def test_the_blocks_behind_it_are_the_free_space(self):
        self.device.unerasable = 4
        self.assertEqual(self.compaction_fails(2 * DATA + 10), EIO)
        self.medium.begin(3)
        self.assertEqual(self.medium.space, 3 * DATA)  # blocks 5 to 7


class TestBroker(JournalCase):
    limits = tuple(SMALL.items())
    SNAPSHOT = 8_800  # the rows of these tables when all are full

    def setUp(self):
        self.device = Worn(16, 4096)
        super().setUp()

    def open_medium(self):
        return FlashMedium(self.device, self.SNAPSHOT)

    def restart(self):
        self.start()
        self.assertEqual(self.reports, [])
        self.reader = self.client("reader", RESUMED, clean=False)
        self.publisher = self.client("publisher")

    def publish(self, n):
        self.publisher.send(publish("t/a", b"x" * 200, 1, n))
        self.world.turn(3)
        if self.publisher.packets() != [ack(PUBACK, n)]:
            self.world.turn(15, ms=100)  # until it tries again
            self.assertEqual(self.publisher.packets(), [ack(PUBACK, n)])
        self.reader.answer()
        self.world.turn(2)

    def test_wherever_it_is_messages_are_stored_and_acknowledged(self):
        self.subscriber("reader", "t/#", 1)
        self.restart()
        for bad in range(16):
            self.device.unerasable, self.device.attempts = bad, 0
            self.restart()
            self.restart()
            n = 0
            while not self.device.attempts:
                n += 1
                self.publish(n)
            self.assertTrue(self.broker.journal.whole)
            self.assertFalse(self.broker.journal_full)

    def test_eight_in_a_row_take_a_second_each(self):
        self.subscriber("reader", "t/#", 1)
        self.restart()
        self.broker.compact()  # SIGUSR1 does not change that
        first = self.medium.first + self.medium.length
        self.device.row = [(first + n) % 16 for n in range(8)]
        self.assertFalse(self.broker.journal.try_compaction())
        self.publisher.send(publish("t/a", b"x", 1, 1))
        self.world.turn(3)
        self.assertEqual(self.publisher.packets(), [])
        self.world.turn(85, ms=100)
        self.assertEqual(self.publisher.packets(), [ack(PUBACK, 1)])

    def check_start(self, retained, report):
        """What cannot be erased is reported once, and the start goes on behind it."""
        for reports in ([report], []):
            self.start()
            self.assertEqual(self.reports, reports)
            self.assertEqual(self.broker.retained.names.count(), retained)
            self.assertEqual(self.device.attempts, 2)  # to set aside, and for a new generation

    def retain_two(self):
        """A generation with one topic, then one with two."""
        self.broker.publish("a", "kept", 0, True)
        self.broker.journal.commit()
        self.broker.journal.try_compaction()
        self.broker.publish("b", "kept", 0, True)
        self.broker.journal.commit()
        return self.medium.first, self.medium.first + self.medium.length

    def test_a_start_leaves_a_damaged_generation_that_cannot_be_erased(self):
        first, _ = self.retain_two()
        at = first * 4096 + 256 + 12
        self.device.data[at : at + 8] = bytes(8)
        self.device.unerasable = first
        report = f"generation 2 is damaged; kept as block {first}, which cannot be erased"
        self.check_start(1, report)

    def test_a_start_leaves_a_rotted_header_that_cannot_be_erased(self):
        _, behind = self.retain_two()
        page = bytearray(self.device.data[:256])
        for at in (10, 138):  # of both headers
            page[at] ^= 1
        self.device.data[behind * 4096 : behind * 4096 + 256] = page
        self.device.unerasable = behind
        kept = f"kept as block {behind}, which cannot be erased"
        self.check_start(2, f"what was newer has rotted; {kept}; it goes on with generation 2")

    def test_a_start_tries_every_block_before_it_fails(self):
        self.device.unerasable = ALL
        with self.assertRaises(OSError) as caught:
            self.start()
        self.assertEqual(caught.exception.errno, EIO)
        self.assertEqual(self.device.attempts, 16)
        self.device.unerasable = -1
        self.start()
