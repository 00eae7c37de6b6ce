# embed_case.py - a broker of a program: with hooks, callbacks, and clients from the network.
import unittest

from fakes import World
from invariants import broken
from packets import subscribe

from slotmq import Broker, Limits, Settings


class EmbedCase(unittest.TestCase):
    LIMITS = {"connections": 4, "max_packet": 2048, "subscriptions": 16}  # noqa: RUF012

    def setUp(self):
        self.start()

    def start(self, hooks=None, limits=None, **settings):
        """A broker without clients, perhaps with hooks, which note their calls."""
        limits = Limits(**(limits or self.LIMITS))
        self.world = World(Broker(limits, Settings(sys_interval=0, **settings)))
        self.broker = self.world.broker
        self.received = []
        if hooks:
            hooks.broker, hooks.calls = self.broker, []
            self.broker.hooks = hooks

    def tearDown(self):
        self.assertEqual(broken(self.broker), [])

    def receive(self, topic, payload, qos, retained):
        """The callback of a subscription."""
        self.received.append((topic, payload, qos, retained))

    def subscriber(self, name, topic, qos=0):
        """A client from the network that is subscribed."""
        client = self.world.client(name)
        client.send(subscribe(1, topic, qos))
        self.world.turn(2)
        client.answer()
        return client
