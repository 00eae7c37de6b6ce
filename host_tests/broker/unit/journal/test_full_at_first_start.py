"""A first start on a full medium: persistent sessions are refused, others are served."""

from full_media import OnDisk
from journal_case import CONNACK, REFUSED, RESUMED, JournalCase
from memory_medium import MemoryMedium
from packets import PUBACK, ack, connect, publish, subscribe

from slotmq.embed import publishing
from slotmq.platform.runtime import MICROPYTHON

LIMITS = {"sessions": 4, "subscriptions": 8, "deliveries": 20, "messages": 20}


class EmptyJournal(JournalCase):
    limits = tuple(LIMITS.items())
    SNAPSHOT = 17_400  # the rows of these tables when all are full

    def setUp(self):
        self.medium = MemoryMedium()
        self.medium = self.open_medium()
        self.fill()
        self.start()

    def fill(self):
        self.medium.space = 0

    def free(self):
        self.medium.space = 1 << 20

    def test_it_is_reported(self):
        self.assertEqual(len(self.reports), 1)
        self.assertIn("no space", self.reports[0])

    def test_messages_are_delivered_to_clean_sessions(self):
        client = self.client("a")
        self.ask(client, subscribe(1, "t", 1), b"\x90\x03\0\1\1")
        for n in range(3):
            self.wait(11)
            delivered = publish("t", b"x", 1, n + 1)
            self.ask(client, publish("t", b"x", 1, 9), ack(PUBACK, 9), delivered)
            client.send(ack(PUBACK, n + 1))

    def test_what_would_have_to_be_stored_is_refused(self):
        self.client("persistent", REFUSED, clean=False)
        self.client("will", REFUSED, will=("w", b"gone", 0, False))
        client = self.client("a")
        self.ask(client, publish("r", b"x", 1, 9, retain=True), ack(PUBACK, 9))
        self.assertEqual(self.broker.retained.names.count(), 0)
        self.assertEqual(self.broker.retained.refused, 1)

    def test_with_space_it_is_stored(self):
        self.client("a")
        self.free()
        self.wait(11)
        self.assertFalse(self.broker.journal_full)
        self.client("persistent", clean=False)
        self.medium.close()
        self.start()
        self.client("persistent", RESUMED, clean=False)


class TestMemory(EmptyJournal):
    def test_an_exceeded_quota_is_a_lack_of_space(self):
        self.medium = MemoryMedium()
        self.medium.error = 122  # EDQUOT
        self.fill()
        self.start()
        self.assertEqual(len(self.reports), 1)
        self.assertIn("no space", self.reports[0])

    def test_a_compaction_that_fails_is_logged(self):
        logged = []
        self.broker.log = lambda level, text: logged.append(text)
        self.broker.log_mask = 255
        publishing.compact(self.broker)
        self.assertEqual(len(logged), 1)
        self.assertIn("cannot be rewritten", logged[0])

    def test_if_it_is_full_again_a_connack_waits_until_the_session_is_stored(self):
        self.free()
        self.wait(11)
        self.fill()
        client = self.come(connect("persistent", clean=False))
        self.assertEqual(client.packets(), [])
        self.free()
        self.wait(11)
        self.assertEqual(client.packets(), [CONNACK])


if not MICROPYTHON:  # a full littlefs has space for as little as this

    class TestFile(OnDisk, EmptyJournal):
        def fill(self):
            self.disk.fill(0)

        def test_space_is_reserved_without_posix_fallocate(self):
            """musl does not emulate it where the file system has none, as NFS."""

            def cannot(file, off, n):
                raise OSError(95, "not supported")

            self.disk.posix_fallocate = cannot
            self.free()
            self.wait(11)
            self.assertFalse(self.broker.journal_full)
            self.assertGreater(len(self.disk.names["/j/f.reserve"].data), 1000)


class TestStoredSession(JournalCase):
    def test_all_clients_wait(self):
        """The stored session might end without a row, and be there again at the next start."""
        self.client("persistent", clean=False)
        self.cut_power()
        self.medium.space = 0
        self.start()
        self.assertEqual(self.come(connect("a")).packets(), [])
        self.medium.space = 1 << 20
        self.wait(11)
        self.client("b")


del EmptyJournal
