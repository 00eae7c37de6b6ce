"""The Receive Maximum that CONNACK announces [MQTT 5.0, 3.2.2.3.3]."""

import unittest

import packets
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

    def test_as_many_are_accepted_and_not_one_more(self):
        """[MQTT-3.3.4-9] Also where the route is known, and where messages wait for PUBREL."""
        for known in (False, True):
            for delivery in ("receive", "release"):
                self.announced(max_inflight_messages=3, qos2_delivery=delivery)
                for n in range(1, 4):
                    self.client.send(packets5.publish("t", b"", 2, n))
                self.world.turn(3)
                self.assertEqual([data[0] for data in self.client.packets()], [0x50] * 3)
                self.assertFalse(self.client.stream.closed)
                if known:
                    reader = self.world.come(packets.connect("r"))
                    reader.send(packets.subscribe(1, "t", 2))
                    self.world.turn(2)
                self.client.send(packets5.publish("t", b"", 2, 3))  # again: it is known
                self.client.send(packets.ack(0x62, 1) + packets5.publish("t", b"", 2, 4))
                self.world.turn(3)
                self.assertEqual([data[0] for data in self.client.packets()], [0x50, 0x70, 0x50])
                self.client.send(packets5.publish("t", b"", 2, 5))
                self.world.turn(3)
                self.assertEqual(self.client.packets(), [b"\xe0\x02\x93\x00"])

    def test_version_3_knows_none_and_may_have_what_the_table_holds(self):
        self.announced(max_inflight_messages=3)
        client = self.world.client("three")
        for n in range(1, 41):
            client.send(packets.publish("t", b"", 2, n))
        self.world.turn(6)
        self.assertEqual([data[0] for data in client.packets()], [0x50] * 40)

    def test_a_reload_raises_it_for_new_clients_and_lowers_it_for_nobody(self):
        """What is announced to a client is what is enforced."""
        self.announced(max_inflight_messages=5)
        for now, wanted in ((3, 5), (7, 7), (3, 7)):
            self.world.broker.settings.max_inflight_messages = now
            self.world.broker.apply_settings()
            new = self.world.come(packets5.connect(f"new{now}"))
            (connack,) = new.packets()
            self.assertEqual(connack[connack.find(b"\x21") + 2], wanted)
            for n in range(1, wanted + 2):
                new.send(packets5.publish("t", b"", 2, n))
            self.world.turn(4)
            answers = [0x50] * wanted + [0xE0]
            self.assertEqual([data[0] for data in new.packets()], answers)
        for n in range(1, 6):
            self.client.send(packets5.publish("t", b"", 2, n))
        self.world.turn(3)
        self.assertEqual([data[0] for data in self.client.packets()], [0x50] * 5)
