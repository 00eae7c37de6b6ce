# journal_case.py - a broker with a journal, and a restart with what the journal contains.
import gc
import unittest

import packets5
from fakes import Client, Stream, World
from invariants import broken
from memory_medium import MemoryMedium
from packets import connect, subscribe

from slotmq import Broker, Limits, Settings
from slotmq.journal.restore import restore
from slotmq.tables.tree_text import lines

CONNACK = b"\x20\x02\0\0"
RESUMED = b"\x20\x02\1\0"
REFUSED = b"\x20\x02\0\3"


def collect():
    """A start collects garbage many times: what is there already is not looked at again."""
    gc.collect()
    getattr(gc, "freeze", gc.collect)()


class JournalCase(unittest.TestCase):
    settings = ()  # (name, value) of those that are not the default
    limits = ()
    commits = ()  # (before packets leave?, interval in seconds), if not the default

    def setUp(self):
        collect()
        self.medium = MemoryMedium()
        self.start()

    def open_medium(self):
        """The journal's medium at a start."""
        return self.medium

    def start(self):
        settings = Settings(sys_interval=0, **dict(self.settings))
        settings.max_session_share = settings.max_offline_share = 100
        self.broker = Broker(Limits(**dict(self.limits)), settings)
        self.world = World(self.broker)
        self.medium = self.open_medium()
        self.reports = []
        restore(self.broker, self.medium, self.reports.append, *self.commits)

    def cut_power(self):
        self.medium = self.medium.after_the_cut()

    def reboot(self):
        """The power fails and comes back."""
        self.assertEqual(broken(self.broker), [])
        self.cut_power()
        self.start()
        self.assertEqual(broken(self.broker), [])

    def stop(self):
        """An orderly stop, and a start some time later."""
        self.world.loop.close()
        self.medium = MemoryMedium(durable=self.medium.durable)
        self.start()

    def wait(self, seconds):
        self.world.turn(10 * seconds, ms=100)

    def come(self, first, turns=3):
        """A client whose first bytes are these."""
        client = Client(Stream())
        self.world.listener.waiting.append(client.stream)
        client.send(first)
        self.world.turn(turns)
        return client

    def client(self, name, expected=CONNACK, **options):
        """A client of 3.1.1 that is connected."""
        client = self.come(connect(name, **options))
        self.assertEqual(bytes(client.stream.received[:4]), expected)
        client._read = 4
        return client

    def client5(self, name, present=0, clean=False, expiry=600, **options):
        """A client of 5.0 that is connected."""
        client = self.come(packets5.connect(name, clean=clean, expiry=expiry, **options))
        found = client.stream.received
        self.assertEqual(bytes(found[2:4]), bytes((present, 0)))
        client._read = 2 + found[1]
        return client

    def subscriber(self, name, topic_filter, qos):
        """A client of 3.1.1 with a persistent session and one subscription."""
        client = self.client(name, clean=False)
        self.ask(client, subscribe(1, topic_filter, qos), b"\x90\x03\0\1" + bytes((qos,)))
        return client

    def leave(self, client):
        """The client's connection ends without DISCONNECT."""
        client.leave()
        self.world.turn(3)

    def ask(self, client, sent, *expected):
        """Send, and get these packets."""
        client.send(sent)
        self.world.turn(3)
        self.assertEqual(client.packets(), list(expected))

    def receive(self, name, expected=RESUMED, rounds=5):
        """The client connects to its session and acknowledges what it gets; its connection."""
        client = self.client(name, expected, clean=False)
        for _ in range(rounds):
            client.answer()
            self.world.turn(3)
        return client

    def payloads(self, name, rounds=5):
        """The payloads of what waits for that session."""
        return [payload for _, payload, _ in self.receive(name, rounds=rounds).messages]

    def log_lines(self, mask=2):
        """A list that gets each line about the journal which the broker logs from now on."""
        found = []
        self.broker.log = lambda bit, text: "journal:" in text and found.append(text)
        self.broker.log_mask = mask
        return found

    def tree(self):
        return sorted(lines(self.broker.subscriptions, self.broker.sessions))
