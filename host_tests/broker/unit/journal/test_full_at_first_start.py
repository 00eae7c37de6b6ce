"""A first start on a full medium: nothing is promised, and who wants no promise is served."""

import os
import unittest

from damage_case import FileCase
from fakes import World
from full_media import OnDisk
from journal_case import CONNACK, RESUMED, JournalCase
from memory_medium import MemoryMedium
from packets import PUBACK, ack, connect, publish, subscribe

from slotmq import Broker, Limits, Settings
from slotmq.embed import local
from slotmq.journal.location import snapshot_bytes
from slotmq.journal.restore import restore
from slotmq.platform.runtime import MICROPYTHON

LIMITS = {"sessions": 4, "subscriptions": 8, "deliveries": 20, "messages": 20}
REFUSED = b"\x20\x02\0\3"


class InMemory:
    def made(self):
        return self.medium

    def fill(self):
        self.medium.space = 0

    def free(self):
        self.medium.space = 1 << 20


class NothingThere(JournalCase):
    SNAPSHOT = snapshot_bytes(Limits(**LIMITS))

    def setUp(self):
        self.said = []
        self.medium = MemoryMedium()
        self.made()
        self.fill()
        self.start()

    def start(self):
        self.broker = Broker(Limits(**LIMITS), Settings(sys_interval=0))
        self.world = World(self.broker)
        restore(self.broker, self.made(), self.said.append)

    def wait(self):
        self.world.turn(110, ms=100)

    def test_it_is_said(self):
        self.assertEqual(self.said, ["there is no room to write"])

    def test_messages_pass(self):
        client = self.client("a")
        self.ask(client, subscribe(1, "t", 1), b"\x90\x03\0\1\1")
        for n in range(3):
            self.wait()
            delivered = publish("t", b"x", 1, n + 1)
            self.ask(client, publish("t", b"x", 1, 9), ack(PUBACK, 9), delivered)
            client.send(ack(PUBACK, n + 1))

    def test_nothing_is_promised(self):
        kept = self.come(connect("kept", clean=False))
        self.assertEqual(kept.packets(), [REFUSED])
        will = self.come(connect("will", will=("w", b"gone", 0, False)))
        self.assertEqual(will.packets(), [REFUSED])
        client = self.client("a")
        self.ask(client, publish("r", b"x", 1, 9, retain=True), ack(PUBACK, 9))
        self.assertEqual(self.broker.retained.names.count(), 0)
        self.assertEqual(self.broker.retained.refused, 1)

    def test_with_room_everything_is(self):
        self.client("a")
        self.free()
        self.wait()
        self.assertFalse(self.broker.journal_full)
        self.client("kept", clean=False)
        self.medium.close()
        self.start()
        self.client("kept", RESUMED, clean=False)


class TestMemory(InMemory, NothingThere):
    def test_a_quota_is_a_lack_of_room(self):
        self.medium.error = 122  # EDQUOT
        self.start()
        self.assertEqual(self.said[-1], "there is no room to write")

    def test_that_nothing_is_written_is_said(self):
        told = []
        self.broker.log = lambda level, text: told.append(text)
        self.broker.log_mask = 255
        local.compact(self.broker)
        self.assertEqual(told, ["The journal cannot be rewritten now."])

    def test_the_room_is_gone_again(self):
        """What was promised before that waits; nobody is told what is not kept."""
        self.free()
        self.wait()
        self.fill()
        kept = self.come(connect("kept", clean=False))
        self.assertEqual(kept.packets(), [])
        self.free()
        self.wait()
        self.assertEqual(kept.packets(), [CONNACK])


if not MICROPYTHON:  # a full littlefs has room for as little as this

    class TestFile(OnDisk, NothingThere):
        def fill(self):
            self.disk.space = self.disk.used()

        def test_room_is_held_where_the_system_cannot_do_that(self):
            """musl has no emulation of posix_fallocate, as on NFS."""

            def cannot(file, off, n):
                raise OSError(95, "not supported")

            self.disk.posix_fallocate = cannot
            self.free()
            self.wait()
            self.assertFalse(self.broker.journal_full)
            self.assertGreater(len(self.disk.names["/j/f.room"].data), 1000)

    class TestPrivate(FileCase):
        def test_nobody_else_may_read_it(self):
            self.assertEqual(os.stat(self.path).st_mode & 0o777, 0o600)  # noqa: PTH116
            with open(self.path, "wb") as file:  # noqa: PTH123
                file.write(self.whole[:40] + bytes(9) + self.whole[49:])
            self.start()
            name = self.said[0].split()[-1]
            self.assertEqual(os.stat(name).st_mode & 0o777, 0o600)  # noqa: PTH116


class TestSomethingThere(JournalCase):
    def test_everybody_waits(self):
        """The session that is kept might end unsaid, and be there at the next start."""
        self.client("kept", clean=False)
        self.medium = self.medium.after_the_cut()
        self.medium.space = 0
        self.start()
        self.assertEqual(self.come(connect("a")).packets(), [])
        self.medium.space = 1 << 20
        self.world.turn(110, ms=100)
        self.client("b")


del JournalCase, NothingThere

if __name__ == "__main__":
    unittest.main()
