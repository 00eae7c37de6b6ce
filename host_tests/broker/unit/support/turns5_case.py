# turns5_case.py - a broker with its real loop, for clients of MQTT 5.0.
import unittest

from fakes import Client, Stream, World
from invariants import broken
from tables import counts

from slotmq import Broker, Limits, Settings
from slotmq.delivery import lifecycle


class Turns5(unittest.TestCase):
    def start(self, limits=None, **settings):
        self.world = World(Broker(limits or Limits(), Settings(sys_interval=0, **settings)))
        self.broker = self.world.broker
        self.at_first = counts(self.broker)

    def setUp(self):
        self.start()

    def tearDown(self):
        self.assertEqual(broken(self.broker), [])
        for stream in list(self.world.loop.of_stream):
            if isinstance(stream, Stream):
                stream.ended = True
                stream.read = stream.write_some = lambda n: n
        self.world.turn(10)
        for session in range(self.broker.sessions.slots):
            if self.broker.sessions.used(session):
                lifecycle.end_session(self.broker, session)
        self.assertEqual(counts(self.broker), self.at_first)

    def written(self, n):
        """No write may be longer than a buffer: it would be another connection's bytes."""
        self.assertLessEqual(n, self.broker.limits.tx_bytes)
        return n

    def come(self, said, turns=3):
        client = Client(Stream(write=self.written))
        self.world.listener.waiting.append(client.stream)
        client.send(said)
        self.world.turn(turns)
        return client

    def wait(self, seconds):
        self.world.turn(seconds * 10, ms=100)
