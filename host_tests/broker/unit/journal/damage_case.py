# damage_case.py - a journal of a few retained messages, which somebody damages: the broker
# starts with what is left of it, and works.
import gc
import unittest

import scratch
from fakes import World
from invariants import broken
from packets import PUBACK, ack, publish

from slotmq import Broker, Limits, Settings
from slotmq.journal.medium_file import FileMedium
from slotmq.journal.restore import restore
from slotmq.platform.runtime import MICROPYTHON

SNAPSHOT, LIMIT, HEADER = 8000, 60000, 16
SMALL = {"connections": 4, "sessions": 4, "subscriptions": 8, "messages": 16, "deliveries": 32}
STEP = 17 if MICROPYTHON else 1
TOPICS = 6


class Case(unittest.TestCase):
    def setUp(self):
        gc.collect()
        getattr(gc, "freeze", gc.collect)()  # a start collects garbage many times
        self.said = []

    def start(self):
        """A broker with what the medium holds; how many retained topics that are."""
        self.said = []
        self.broker = Broker(Limits(**SMALL), Settings(sys_interval=0, mqtt_versions=3))
        restore(self.broker, self.medium(), self.said.append)
        self.assertEqual(broken(self.broker), [])
        return self.broker.retained.names.count()

    def live(self):
        """One commit for each topic, and no compaction behind them."""
        self.assertEqual(self.start(), 0)
        world = World(self.broker)
        client = world.client("p", clean=False)
        for n in range(TOPICS):
            client.send(publish(f"r/{n}", b"%d" % n, 1, n + 1, retain=True))
            world.turn(3)
            self.assertEqual(client.packets(), [ack(PUBACK, n + 1)])
        self.broker.journal.medium.close()

    def restart(self):
        """As start(), and then it works: what comes is there at the next one."""
        found = self.start()
        said = self.said
        world = World(self.broker)
        client = world.client("q")
        client.send(publish("new", b"new", retain=True))
        world.turn(3)
        self.broker.journal.medium.close()
        self.assertEqual(self.start(), found + 1)
        self.assertEqual(self.said, [])
        self.broker.journal.medium.close()
        self.said = said
        return found


class FileCase(Case):
    kind = FileMedium

    def setUp(self):
        super().setUp()
        self.path = scratch.path()
        self.live()
        self.whole = scratch.content(self.path)

    def medium(self):
        self.made = self.kind(self.path, SNAPSHOT, LIMIT)
        return self.made

    def tearDown(self):
        self.made.close()
        super().tearDown()
