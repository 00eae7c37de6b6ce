# damage_case.py - a journal of a few retained messages, which a test damages: the broker starts
# with what can be restored, and works.
import os
import unittest

import scratch
from fakes import World
from invariants import broken
from journal_case import collect
from packets import PUBACK, ack, publish

from slotmq import Broker, Limits, Settings
from slotmq.journal.medium_file import FileMedium
from slotmq.journal.restore import restore
from slotmq.platform.runtime import MICROPYTHON

SNAPSHOT, LIMIT, HEADER = 8000, 60000, 16
SMALL = {"connections": 4, "sessions": 4, "subscriptions": 8, "messages": 16, "deliveries": 32}
STEP = 17 if MICROPYTHON else 1
TOPICS = 6


class DamageCase(unittest.TestCase):
    def setUp(self):
        collect()

    def start(self):
        """A start with what the medium contains; the number of retained topics."""
        self.reports = []
        self.broker = Broker(Limits(**SMALL), Settings(sys_interval=0, mqtt_versions=3))
        restore(self.broker, self.open_medium(), self.reports.append)
        self.assertEqual(broken(self.broker), [])
        return self.broker.retained.names.count()

    def write_journal(self):
        """One commit for each topic, and no compaction behind them."""
        self.assertEqual(self.start(), 0)
        world = World(self.broker)
        client = world.client("p", clean=False)
        for n in range(TOPICS):
            client.send(publish(f"r/{n}", b"%d" % n, 1, n + 1, retain=True))
            world.turn(3)
            self.assertEqual(client.packets(), [ack(PUBACK, n + 1)])
        self.broker.journal.medium.close()

    def check_report(self, *words):
        """The first report contains these words."""
        for word in words:
            self.assertIn(word, self.reports[0])

    def restart(self):
        """As start(); then a new message is stored, and a second start restores it too."""
        found = self.start()
        reports = self.reports
        world = World(self.broker)
        client = world.client("q")
        client.send(publish("new", b"new", retain=True))
        world.turn(3)
        self.broker.journal.medium.close()
        self.assertEqual(self.start(), found + 1)
        self.assertEqual(self.reports, [])
        self.broker.journal.medium.close()
        self.reports = reports
        return found


class FileDamageCase(DamageCase):
    kind = FileMedium

    def setUp(self):
        super().setUp()
        self.path = scratch.path()
        self.write_journal()
        self.whole = scratch.content(self.path)

    def open_medium(self):
        self.medium = self.kind(self.path, SNAPSHOT, LIMIT)
        return self.medium

    def tearDown(self):
        self.medium.close()
        super().tearDown()

    def put(self, data):
        with open(self.path, "wb") as file:  # noqa: PTH123
            file.write(data)

    def take_copy(self, generation):
        """Remove the copy of a damaged generation, which must be reported; its content or None."""
        name = f"{self.path}.damaged-{generation}"
        found = scratch.content(name)
        if found is not None:
            os.remove(name)  # noqa: PTH107
            self.assertEqual([name in text for text in self.reports], [True])
        return found
