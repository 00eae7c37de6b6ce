"""The journal finds no heap for what it seldom does: that is logged, and it tries again."""

from fakes import lock
from journal_case import CONNACK, RESUMED, JournalCase
from packets import PINGREQ, PINGRESP, PUBACK, ack, connect, publish, subscribe

from slotmq.journal import compaction
from slotmq.journal.writer import Journal
from slotmq.platform import heap, ondemand

WAITS = "The journal: no heap is left, all clients wait until that changes."
AGAIN = "The journal: there is space again."


def fails(*args):
    raise MemoryError


class TestNoHeap(JournalCase):
    def setUp(self):
        super().setUp()
        self.lines = self.log_lines()
        self.reader = self.client("a", clean=False)
        self.other = self.client("b")
        self.replaced = None

    def tearDown(self):
        if self.replaced:
            self.undo()

    def without_heap(self, place, name):
        """Calls of it raise MemoryError until undo()."""
        self.replaced = place, name, getattr(place, name)
        self.world.exhausted = None  # the lock is not lifted for the replacement
        setattr(place, name, fails)

    def undo(self):
        setattr(*self.replaced)
        self.replaced = None

    def check_waiting(self, granted=1):
        """SUBSCRIBE and PINGREQ wait until there is heap."""
        self.reader.send(subscribe(1, "x", 1))
        self.world.turn(3)
        for _ in range(5):
            self.other.send(PINGREQ)
            self.world.turn(5, ms=200)
        self.assertEqual(self.reader.packets() + self.other.packets(), [])
        self.assertEqual(self.lines, [WAITS])
        self.assertGreater(self.broker.journal.failures, 0)
        self.undo()
        self.wait(10)
        self.assertEqual(self.lines, [WAITS, AGAIN])
        self.assertEqual(self.reader.packets(), [b"\x90\x03\0\1" + bytes((granted,))])
        self.assertEqual(self.other.packets(), [PINGRESP] * 5)

    def test_to_load_its_code_to_write_rows_and_for_a_compaction(self):
        for place, name, granted in (
            (Journal, "_compaction", 1),
            (compaction, "write", 1),
            (compaction, "_forget", 0x80),  # a new subscription would have to be stored
        ):
            self.setUp()
            self.without_heap(place, name)
            if name == "_forget":
                self.assertFalse(self.broker.journal.try_compaction())
            self.check_waiting(granted)
            self.reboot()
            self.client("a", RESUMED, clean=False)

    def test_between_two_turns_the_program_gets_the_error_and_the_heap_lock_is_restored(self):
        self.reader.send(subscribe(1, "t", 0))
        self.world.turn(5, ms=200)
        self.reader.packets()
        self.broker.sessions.dirty[0] |= 1
        self.broker.sessions.changed = 1
        self.without_heap(Journal, "_compaction")
        with self.assertRaises(MemoryError):
            for _ in range(20):  # until the outgoing buffer is full, and written
                self.broker.publish("t", bytes(100), 0)
        self.assertFalse(any(heap._state[:3]))
        self.undo()
        self.other.send(PINGREQ)
        self.wait(2)
        self.assertEqual(self.other.packets(), [PINGRESP])

    def test_within_a_compaction_after_which_the_heap_is_locked_again(self):
        self.without_heap(compaction, "write")
        self.broker.journal.whole = False
        self.broker.journal.retry_at = 0
        self.broker.sessions.changed = 1
        journal = self.broker.journal
        lock()
        try:
            journal.commit()
            lifted = heap._state[1]
        finally:
            heap.unlock()
        self.undo()
        self.assertEqual(lifted, 0)

    def test_to_load_what_tells_the_tables_that_the_journal_is_full(self):
        take = ondemand.take

        def small(name, now):
            return fails() if name == "control" else take(name, now)

        self.without_heap(compaction, "_forget")
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

    def test_for_an_hour_in_which_it_tries_a_few_times(self):
        """Each attempt erases blocks."""
        self.without_heap(compaction, "_forget")
        self.assertFalse(self.broker.journal.try_compaction())
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

    def test_afterwards_the_next_compaction_is_not_delayed(self):
        """Not after a long time without heap, nor after many attempts that SIGUSR1 asked for."""
        for attempts in (1, 8):
            self.setUp()
            self.broker.settings.max_inflight_messages = 1
            self.broker.apply_settings()
            self.broker.compact()
            self.without_heap(compaction, "_forget")
            for _ in range(attempts):
                self.broker.compact()
            self.world.turn(600 if attempts == 1 else 0, ms=1000)
            self.undo()
            self.world.turn(300 if attempts == 1 else 0, ms=1000)
            self.broker.settings.max_inflight_messages = 2  # as a reload does
            self.broker.apply_settings()
            self.other.send(PINGREQ)
            self.world.turn(11, ms=100)
            self.assertEqual(self.other.packets(), [PINGRESP])

    def test_for_a_compaction_that_a_commit_needs(self):
        """Nothing may leave: the change is written nowhere."""
        self.medium.capacity = self.medium.end - 1
        self.without_heap(Journal, "_compaction")
        publisher = self.come(connect("p"))
        publisher.send(publish("t", b"x", 1, 1, retain=True))
        self.world.turn(5)
        self.assertEqual(bytes(publisher.stream.received), b"")
        self.assertEqual(self.lines, [WAITS])
        self.undo()
        self.medium.capacity = 1 << 20
        self.wait(2)
        self.assertEqual(publisher.packets(), [CONNACK, ack(PUBACK, 1)])

    def test_to_reserve_space(self):
        """What was written is whole: its acknowledgement leaves."""
        self.broker.journal.spare_until = 0
        self.without_heap(compaction, "spare")
        publisher = self.client("p", clean=False)
        self.ask(publisher, publish("t", b"x", 1, 1, retain=True), ack(PUBACK, 1))
        self.assertEqual(self.lines, [])
        self.assertFalse(self.broker.journal_full)
