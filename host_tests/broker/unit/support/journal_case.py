# journal_case.py - a broker that keeps a journal, and is started again with what it holds.
import gc
import unittest

from fakes import Client, Stream, World
from invariants import broken
from memory_medium import MemoryMedium
from packets import connect

from slotmq import Broker, Limits, Settings
from slotmq.journal.restore import restore

CONNACK = b"\x20\x02\0\0"
RESUMED = b"\x20\x02\1\0"


class JournalCase(unittest.TestCase):
    settings = ()  # (name, value) of those that are not the default
    limits = ()

    def setUp(self):
        gc.collect()
        getattr(gc, "freeze", gc.collect)()  # a start collects garbage many times
        self.said = []
        self.medium = MemoryMedium()
        self.start()

    def start(self):
        settings = Settings(sys_interval=0, **dict(self.settings))
        settings.max_session_share = settings.max_offline_share = 100
        self.broker = Broker(Limits(**dict(self.limits)), settings)
        self.world = World(self.broker)
        restore(self.broker, self.medium, self.said.append)

    def reboot(self):
        """The power fails, and comes back."""
        self.assertEqual(broken(self.broker), [])
        self.medium = self.medium.after_the_cut()
        self.start()
        self.assertEqual(broken(self.broker), [])

    def come(self, said, turns=3):
        """A client whose first bytes are these."""
        client = Client(Stream())
        self.world.listener.waiting.append(client.stream)
        client.send(said)
        self.world.turn(turns)
        return client

    def client(self, name, expected=CONNACK, **options):
        """A client of 3.1.1 that is connected."""
        client = self.come(connect(name, **options))
        found = client.stream.received
        self.assertEqual(bytes(found[:4]), expected)
        client._read = 4
        return client

    def ask(self, client, said, *expected):
        """Send, and get these packets."""
        client.send(said)
        self.world.turn(3)
        self.assertEqual(client.packets(), list(expected))
