"""No heap for what the journal does seldom: it is said, and it passes."""

from journal_case import RESUMED, JournalCase
from packets import PINGREQ, PINGRESP, PUBACK, ack, connect, publish, subscribe

from slotmq.journal import compaction
from slotmq.journal.writer import Journal
from slotmq.platform import heap, ondemand

WAITS = "The journal: no heap is left, all clients wait until that changes."
AGAIN = "The journal: there is room again."


def fails(*args):
    raise MemoryError


class TestMemory(JournalCase):
    def setUp(self):
        super().setUp()
        self.lines = []
        self.broker.log = lambda bit, text: "journal:" in text and self.lines.append(text)
        self.broker.log_mask = 2
        self.reader = self.client("a", clean=False)
        self.other = self.client("b")
        self.back = None

    def tearDown(self):
        if self.back:
            self.undo()

    def without(self, place, name):
        """Whatever calls it finds no heap until undo()."""
        self.back = place, name, getattr(place, name)
        self.world.exhausted = None  # the lock is not lifted for what stands there now
        setattr(place, name, fails)

    def undo(self):
        setattr(*self.back)
        self.back = None

    def asked(self, granted=1):
        """A SUBSCRIBE and then PINGREQs, which wait as well; and the heap is back."""
        self.reader.send(subscribe(1, "x", 1))
        self.world.turn(3)
        for _ in range(5):
            self.other.send(PINGREQ)
            self.world.turn(5, ms=200)
        self.assertEqual(self.reader.packets() + self.other.packets(), [])
        self.assertEqual(self.lines, [WAITS])
        self.assertGreater(self.broker.journal.failures, 0)
        self.undo()
        self.world.turn(100, ms=100)
        self.assertEqual(self.lines, [WAITS, AGAIN])
        self.assertEqual(self.reader.packets(), [b"\x90\x03\0\1" + bytes((granted,))])
        self.assertEqual(self.other.packets(), [PINGRESP] * 5)

    def test_its_code_cannot_be_loaded(self):
        self.without(Journal, "_control")
        self.asked()
        self.reboot()
        self.client("a", RESUMED, clean=False)

    def test_between_two_turns_it_is_the_programs_and_nothing_stays_lifted(self):
        self.reader.send(subscribe(1, "t", 0))
        self.world.turn(5, ms=200)
        self.reader.packets()
        self.broker.sessions.dirty[0] |= 1
        self.broker.sessions.changed = 1
        self.without(Journal, "_control")
        with self.assertRaises(MemoryError):
            for _ in range(20):  # until the outgoing buffer is full, and written
                self.broker.publish("t", bytes(100), 0)
        self.assertFalse(any(heap._state[:3]))
        self.undo()
        self.other.send(PINGREQ)
        self.world.turn(20, ms=100)
        self.assertEqual(self.other.packets(), [PINGRESP])

    def test_in_the_midst_of_a_compaction_the_lock_is_on_again_behind_it(self):
        self.without(compaction, "write")
        self.broker.journal.whole = False
        self.broker.journal.retry_at = 0
        self.broker.sessions.changed = 1
        journal = self.broker.journal
        heap.lock()  # as Loop.run()
        try:
            journal.commit()
            lifted = heap._state[1]
        finally:
            heap.unlock()
        self.undo()
        self.assertEqual(lifted, 0)

    def test_rows_cannot_be_written(self):
        self.without(compaction, "write_rows")
        self.asked()

    def test_a_compaction_finds_none(self):
        self.without(compaction, "_forget")
        self.assertFalse(self.broker.journal.compacted())
        self.asked(0x80)  # which is a new promise

    def test_nor_do_the_tables_that_are_to_be_told(self):
        take = ondemand.take

        def small(name, now):
            return fails() if name == "control" else take(name, now)

        self.without(compaction, "_forget")
        ondemand.take = small
        try:
            self.medium.capacity = 0
            self.reader.send(subscribe(1, "x", 1))
            self.world.turn(5)
        finally:
            ondemand.take = take
        self.assertEqual(self.lines, [WAITS])
        self.assertEqual(self.broker.subscriptions.journal_full, 1)
        self.assertTrue(self.broker.fast_path is None)

    def test_an_hour_without_any_is_a_few_attempts(self):
        """Each erases blocks of a medium that cannot be written."""
        self.without(compaction, "_forget")
        self.assertFalse(self.broker.journal.compacted())
        self.world.turn(3600, ms=1000)
        self.assertIn(self.broker.journal.failures, range(15, 25))
        self.undo()
        self.broker.compact()  # SIGUSR1
        self.world.turn(3)
        self.assertEqual(self.lines, [WAITS, AGAIN])
        self.broker.journal.medium.capacity = 0
        before = self.broker.journal.generation
        self.reader.send(subscribe(2, "y", 1))
        self.world.turn(1)
        self.assertEqual(self.broker.journal.generation, before + 1)

    def test_when_it_has_passed_a_reason_to_write_all_waits_a_second_as_ever(self):
        self.broker.settings.max_inflight_messages = 1
        self.broker.apply_settings()
        self.broker.compact()
        self.without(compaction, "_forget")
        self.assertFalse(self.broker.journal.compacted())
        self.world.turn(600, ms=1000)
        self.undo()
        self.world.turn(300, ms=1000)
        self.broker.settings.max_inflight_messages = 2  # as a reload does
        self.broker.apply_settings()
        self.other.send(PINGREQ)
        self.world.turn(11, ms=100)
        self.assertEqual(self.other.packets(), [PINGRESP])

    def test_who_asks_that_all_is_written_makes_nobody_wait_longer(self):
        self.without(compaction, "_forget")
        for _ in range(8):
            self.broker.compact()  # SIGUSR1
        self.undo()
        self.other.send(PINGREQ)
        self.world.turn(11, ms=100)
        self.assertEqual(self.other.packets(), [PINGRESP])

    def test_a_journal_that_is_long_enough_for_a_compaction_finds_none(self):
        """Nothing may leave: what has changed is written nowhere."""
        self.medium.capacity = self.medium.end - 1
        self.without(Journal, "_control")
        publisher = self.come(connect("p"))
        publisher.send(publish("t", b"x", 1, 1, retain=True))
        self.world.turn(5)
        self.assertEqual(bytes(publisher.stream.received), b"")
        self.assertEqual(self.lines, [WAITS])
        self.undo()
        self.medium.capacity = 1 << 20
        self.world.turn(20, ms=100)
        self.assertEqual(publisher.packets(), [b"\x20\x02\0\0", ack(PUBACK, 1)])

    def test_a_look_for_room_finds_none(self):
        """What was written is whole: who waits for it is answered."""
        self.broker.journal.safe = 0
        self.without(compaction, "spare")
        publisher = self.client("p", clean=False)
        self.ask(publisher, publish("t", b"x", 1, 1, retain=True), ack(PUBACK, 1))
        self.assertEqual(self.lines, [])
        self.assertFalse(self.broker.journal_full)


del JournalCase
