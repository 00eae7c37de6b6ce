"""A medium with little free space: what would need more is refused, and all else is served."""

from full_media import OnDisk, OnLittlefs
from invariants import broken
from journal_case import JournalCase
from packets import PINGREQ, PINGRESP, PUBACK, ack, publish

from slotmq.platform.runtime import MICROPYTHON

LIMITS = {"connections": 24, "sessions": 26, "max_packet": 40000, "message_bytes": 300000}
LIMITS.update({"messages": 300, "deliveries": 300, "queued": 250, "rx_bytes": 4096})
LIMITS.update({"tx_bytes": 4096})
LARGE = b"L" * 30000
SMALL = b"S" * 900
CROWD = 20


class LittleSpaceCase(JournalCase):
    limits = tuple(LIMITS.items())
    SNAPSHOT = 500000

    def setUp(self):
        super().setUp()
        self.assertGreater(self.broker.journal.limit, 0)
        self.subscriber("reader", "t/#", 1).leave()
        self.publisher = self.client("publisher")

    def received(self):
        """What the reader gets after a reboot."""
        self.assertEqual(broken(self.broker), [])
        self.medium.close()
        self.start()
        return self.payloads("reader", 150)

    def publish(self, number, payload):
        """A message is acknowledged; 1: it was refused."""
        before = self.broker.messages.refused
        self.publisher.send(publish("t/a", payload, 1, number))
        self.world.turn(60)
        self.assertEqual(self.publisher.packets(), [ack(PUBACK, number)])
        return self.broker.messages.refused - before

    def test_only_a_message_that_is_too_large_is_refused(self):
        self.assertEqual(self.publish(1, SMALL), 0)
        self.assertEqual(self.publish(2, LARGE), 1)
        self.assertFalse(self.broker.journal_full)
        self.assertEqual(self.publish(3, b"behind"), 0)
        self.client("clean")
        self.assertEqual(self.received(), [SMALL, b"behind"])

    def test_it_is_taken_when_there_is_space_again(self):
        lines = self.log_lines(6)
        self.assertEqual(self.publish(1, LARGE), 1)
        self.free()
        self.world.turn(11, ms=100)
        self.assertEqual(self.publish(2, LARGE), 0)
        self.assertEqual(len(lines), 1)
        self.assertIn("space again", lines[0])
        self.assertEqual(self.received(), [LARGE])

    def test_all_space_is_used_before_anything_is_refused(self):
        """More than what was reserved."""
        taken = 0
        while not self.publish(taken + 1, SMALL * 3):
            taken += 1
        self.assertGreater(taken * 2700, 8192)
        self.assertEqual(self.received(), [SMALL * 3] * taken)

    def test_a_retained_message_is_delivered_and_not_stored(self):
        self.publisher.send(publish("r", LARGE, 1, 9, retain=True))
        self.world.turn(60)
        self.assertEqual(self.publisher.packets(), [ack(PUBACK, 9)])
        self.assertEqual(self.broker.retained.refused, 1)
        self.assertEqual(self.broker.retained.names.count(), 0)
        self.ask(self.publisher, publish("r", SMALL, 1, 10, retain=True), ack(PUBACK, 10))
        self.assertEqual(self.broker.retained.names.count(), 1)

    def test_a_message_of_the_program_is_refused_too(self):
        self.broker.publish("t/a", LARGE, 1)
        self.broker.publish("t/a", SMALL, 1)
        self.world.turn(2)
        self.assertFalse(self.broker.journal_full)
        self.assertEqual(self.received(), [SMALL])

    def test_a_crowd_in_one_turn_is_answered_and_what_was_not_refused_is_stored(self):
        crowd = [self.client(f"c{n}") for n in range(CROWD)]
        for client in crowd:
            client.send(b"".join([publish("t/a", SMALL, 1, n + 1) for n in range(4)]))
        self.world.turn(60)
        for client in crowd:
            self.assertEqual(client.packets(), [ack(PUBACK, n + 1) for n in range(4)])
        refused = self.broker.messages.refused
        self.assertGreater(refused, 0)
        self.assertLess(refused, 4 * CROWD)
        self.client("clean")
        self.assertEqual(self.received(), [SMALL] * (4 * CROWD - refused))

    def test_a_check_of_the_space_without_a_change_moves_no_time(self):
        """Otherwise with an interval of 0 a sum in the loop would pass 2^30, and allocate."""
        journal = self.broker.journal
        journal.interval = (1 << 30) - 1
        self.publisher.send(PINGREQ)
        for _ in range(5):
            journal.pending = journal.limit
            self.publisher.send(PINGREQ)
            self.world.turn(3)
            self.assertGreaterEqual(journal.saved, 0)
        self.assertEqual(self.publisher.packets(), [PINGRESP] * 6)

    def test_with_enough_space_nothing_is_checked(self):
        self.free()
        self.broker.journal.retry_at = 0
        self.broker.journal.try_compaction()
        self.assertEqual(self.broker.journal.limit, 0)
        self.assertTrue(self.broker.fast_path)
        self.assertEqual(self.publish(1, LARGE), 0)
        self.assertEqual(self.received(), [LARGE])


if MICROPYTHON:

    class TestFile(OnLittlefs, LittleSpaceCase):
        BLOCKS = 1200

        def open_medium(self):
            is_first = self.device is None
            medium = super().open_medium()
            if is_first:
                with open("/j/other", "wb") as file:  # noqa: PTH123
                    file.write(bytes(self.BLOCKS * self.SIZE - 46000))
            return medium
else:

    class TestFile(OnDisk, LittleSpaceCase):
        def open_medium(self):
            is_first = self.disk is None
            medium = super().open_medium()
            if is_first:
                self.disk.most = 46000
            return medium


del LittleSpaceCase
