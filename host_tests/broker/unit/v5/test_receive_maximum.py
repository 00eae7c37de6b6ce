"""The Receive Maximum that CONNACK announces [MQTT 5.0, 3.2.2.3.3]."""

import unittest

import packets5
from fakes import World

from slotmq import Broker, Limits, Settings


class TestReceiveMaximum(unittest.TestCase):
    def announced(self, **settings):
        limits = Limits(inflight=60, deliveries=60, received=40)
        self.world = World(Broker(limits, Settings(sys_interval=0, **settings)))
        self.client = self.world.come(packets5.connect("client"))
        (connack,) = self.client.packets()
        at = connack.find(b"\x21")
        return connack[at + 1] << 8 | connack[at + 2]

    def test_it_is_what_the_table_holds(self):
        self.assertEqual(self.announced(), 40)

    def test_max_inflight_messages_lowers_it(self):
        self.assertEqual(self.announced(max_inflight_messages=7), 7)

    def test_but_does_not_raise_it(self):
        self.assertEqual(self.announced(max_inflight_messages=60), 40)

    def test_as_many_are_accepted(self):
        """[MQTT-3.3.4-9]"""
        self.announced(max_inflight_messages=3)
        for n in range(1, 4):
            self.client.send(packets5.publish("t", b"", 2, n))
        self.world.turn(3)
        self.assertEqual([data[0] for data in self.client.packets()], [0x50] * 3)
        self.assertFalse(self.client.stream.closed)
