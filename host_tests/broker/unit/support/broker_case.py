# broker_case.py - a broker with its real loop and clients on fake streams. After each test the
# tables are consistent, and as empty as before it.
import unittest

from fakes import Stream, World
from invariants import broken
from tables import counts

from slotmq import Broker, Limits, Settings
from slotmq.delivery import lifecycle


class BrokerCase(unittest.TestCase):
    LIMITS = {}  # noqa: RUF012

    def setUp(self):
        self.start()

    def start(self, limits=None, **settings):
        settings = {"sys_interval": 0} | settings
        self.world = World(Broker(limits or Limits(**self.LIMITS), Settings(**settings)))
        self.broker = self.world.broker
        self.at_first = counts(self.broker)

    def tearDown(self):
        self.assertEqual(broken(self.broker), [])
        streams = [one for one in self.world.loop.of_stream if isinstance(one, Stream)]
        for stream in streams:
            stream.read = stream.write_some = lambda n: n
        self.world.turn(10)
        for stream in streams:
            if not stream.closed:
                self.assertEqual(stream.watch.out.rest, b"", "half a packet")
            stream.ended = True
        self.world.turn(10)
        for session in range(self.broker.sessions.slots):
            if self.broker.sessions.used(session):
                lifecycle.end_session(self.broker, session)
        self.assertEqual(counts(self.broker), self.at_first)

    def written(self, n):
        """No write may be longer than a buffer: it would be another connection's bytes."""
        self.assertLessEqual(n, self.broker.limits.tx_bytes)
        return n

    def come(self, first, turns=3):
        """A new connection that sends these bytes."""
        return self.world.come(first, turns, Stream(write=self.written))

    def wait(self, seconds):
        self.world.turn(seconds * 10, ms=100)
