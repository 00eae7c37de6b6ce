"""A medium with a little room: a packet, or a crowd, that would need more is refused what must
be kept, and everything goes on."""

from fakes import World
from full_media import OnDisk, OnLittlefs
from invariants import broken
from journal_case import RESUMED, JournalCase
from packets import PUBACK, ack, publish, subscribe

from slotmq import Broker, Limits, Settings
from slotmq.journal.restore import restore
from slotmq.platform.runtime import MICROPYTHON

LIMITS = {"connections": 24, "sessions": 26, "max_packet": 40000, "message_bytes": 300000}
LIMITS.update({"messages": 300, "deliveries": 300, "queued": 250, "rx_bytes": 4096})
LIMITS.update({"tx_bytes": 4096})
LARGE = b"L" * 30000
SMALL = b"S" * 900
CROWD = 20


class LittleCase(JournalCase):
    SNAPSHOT = 500000
    medium = None

    def start(self):
        self.broker = Broker(Limits(**LIMITS), Settings(sys_interval=0, **dict(self.settings)))
        self.world = World(self.broker)
        restore(self.broker, self.made(), self.said.append)

    def setUp(self):
        self.said = []
        self.start()
        self.assertGreater(self.broker.journal.most, 0)
        self.reader = self.client("reader", clean=False)
        self.ask(self.reader, subscribe(1, "t/#", 1), b"\x90\x03\0\1\1")
        self.reader.leave()
        self.publisher = self.client("publisher")

    def received(self):
        """After a reboot: what the reader gets."""
        self.assertEqual(broken(self.broker), [])
        self.medium.close()
        self.start()
        reader = self.client("reader", RESUMED, clean=False)
        for _ in range(150):
            reader.answer()
            self.world.turn(2)
        return [payload for _, payload, _ in reader.messages]

    def say(self, number, payload):
        """It is acknowledged; so many were refused."""
        before = self.broker.messages.refused
        self.publisher.send(publish("t/a", payload, 1, number))
        self.world.turn(60)
        self.assertEqual(self.publisher.packets(), [ack(PUBACK, number)])
        return self.broker.messages.refused - before

    def test_a_message_that_is_too_large_is_refused_and_nothing_else(self):
        self.assertEqual(self.say(1, SMALL), 0)
        self.assertEqual(self.say(2, LARGE), 1)
        self.assertFalse(self.broker.journal_full)
        self.assertEqual(self.say(3, b"behind"), 0)
        self.client("clean")
        self.assertEqual(self.received(), [SMALL, b"behind"])

    def test_it_is_taken_when_there_is_room_again(self):
        lines = []
        self.broker.log = lambda bit, text: "journal:" in text and lines.append(text)
        self.broker.log_mask = 6
        self.assertEqual(self.say(1, LARGE), 1)
        self.free()
        self.world.turn(11, ms=100)
        self.assertEqual(self.say(2, LARGE), 0)
        self.assertEqual(lines, ["The journal: room for all."])
        self.assertEqual(self.received(), [LARGE])

    def test_what_is_there_is_used_before_anything_is_refused(self):
        """What was reserved is used up, and there is more."""
        taken = 0
        while not self.say(taken + 1, SMALL * 3):
            taken += 1
        self.assertGreater(taken * 2700, 8192)
        self.assertEqual(self.received(), [SMALL * 3] * taken)

    def test_a_retained_one_is_delivered_and_not_kept(self):
        self.publisher.send(publish("r", LARGE, 1, 9, retain=True))
        self.world.turn(60)
        self.assertEqual(self.publisher.packets(), [ack(PUBACK, 9)])
        self.assertEqual(self.broker.retained.refused, 1)
        self.assertEqual(self.broker.retained.names.count(), 0)
        self.ask(self.publisher, publish("r", SMALL, 1, 10, retain=True), ack(PUBACK, 10))
        self.assertEqual(self.broker.retained.names.count(), 1)

    def test_what_the_program_itself_publishes(self):
        self.broker.publish("t/a", LARGE, 1)
        self.broker.publish("t/a", SMALL, 1)
        self.world.turn(2)
        self.assertFalse(self.broker.journal_full)
        self.assertEqual(self.received(), [SMALL])

    def test_a_crowd_in_one_turn(self):
        """More than there is room for: each is answered, and what was not refused is there."""
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

    def test_what_is_weighed_and_changes_nothing_moves_no_time(self):
        """Else with an interval of 0 the loop would reckon with more than 2^30, and allocate."""
        journal = self.broker.journal
        journal.interval = (1 << 30) - 1
        self.publisher.send(b"\xc0\0")
        for _ in range(5):
            journal.pending = journal.most  # so much has been weighed
            self.publisher.send(b"\xc0\0")
            self.world.turn(3)
            self.assertGreaterEqual(journal.saved, 0)
        self.assertEqual(self.publisher.packets(), [b"\xd0\0"] * 6)

    def test_where_there_is_room_nothing_is_weighed(self):
        self.free()
        self.broker.journal.retry_at = 0
        self.broker.journal.compacted()
        self.assertEqual(self.broker.journal.most, 0)
        self.assertTrue(self.broker.fast_path)
        self.assertEqual(self.say(1, LARGE), 0)
        self.assertEqual(self.received(), [LARGE])


del JournalCase

if MICROPYTHON:

    class TestFile(OnLittlefs, LittleCase):
        BLOCKS = 1200

        def made(self):
            is_first = self.medium is None
            medium = super().made()
            if is_first:
                with open("/j/other", "wb") as file:  # noqa: PTH123
                    file.write(bytes(self.BLOCKS * self.SIZE - 46000))
            return medium
else:

    class TestFile(OnDisk, LittleCase):
        def made(self):
            is_first = self.disk is None
            medium = super().made()
            if is_first:
                self.disk.space = 46000
            return medium


del LittleCase
