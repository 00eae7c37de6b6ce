"""Which connections may publish on a remembered route."""

import unittest

from slotmq import Limits
from slotmq.fast import Routes
from slotmq.platform.runtime import MICROPYTHON

NONE = 0xFFFF
CONNECTIONS = 20

if MICROPYTHON:
    from slotmq.fast.senders_viper import make
else:
    from slotmq.fast.senders_cpython import make


class TestSenders(unittest.TestCase):
    def setUp(self):
        self.routes = Routes(Limits().routes, 32)
        self.senders = self.routes.senders = make(self.routes, CONNECTIONS)
        self.slot = self.keep(b"a")

    def keep(self, topic):
        self.routes.find(topic, 0, len(topic))
        return self.routes.keep(topic, 0, len(topic), 0, 0)

    def may(self, slot):
        return [conn for conn in range(CONNECTIONS) if self.senders.may(conn, slot)]

    def test_nobody_may_at_first(self):
        self.assertEqual(self.may(self.slot), [])

    def test_each_connection_has_a_bit_of_its_own(self):
        for conn in (0, 7, 8, 19):
            self.senders.add(conn, b"xa", 1, 1)
        self.assertEqual(self.may(self.slot), [0, 7, 8, 19])
        self.senders.remove(8)
        self.assertEqual(self.may(self.slot), [0, 7, 19])

    def test_a_topic_that_is_not_remembered_has_none(self):
        self.senders.add(3, b"b", 0, 1)
        self.assertEqual(self.may(self.slot), [])

    def test_a_slot_with_another_topic_is_asked_anew(self):
        self.senders.add(3, b"a", 0, 1)
        self.routes.forget()
        for topic in (b"a", b"b", b"c"):
            self.assertEqual(self.may(self.keep(topic)), [])

    def test_a_client_that_ends_loses_all_its_bits(self):
        other = self.keep(b"b")
        for topic in (b"a", b"b"):
            self.senders.add(3, topic, 0, 1)
            self.senders.add(4, topic, 0, 1)
        self.senders.remove(3)
        self.assertEqual((self.may(self.slot), self.may(other)), ([4], [4]))
