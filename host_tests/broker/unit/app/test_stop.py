"""An orderly stop publishes the wills of connected clients, and the delayed wills."""

import packets5
from broker_case import BrokerCase
from packets import PINGREQ, connect, subscribe

DELAY = b"\x18\0\0\0\x64"  # Will Delay Interval, seconds


class TestStop(BrokerCase):
    def witness(self, level):
        if level == 4:
            return self.come(connect("w4") + subscribe(1, "will/#", 0))
        return self.come(packets5.connect("w5") + packets5.subscribe(1, "will/#", 0))

    def clients_with_wills(self):
        """One of each version is connected, and one has left and its will is delayed."""
        self.come(connect("a", will=("will/plain", "x", 0)))
        self.come(packets5.connect("b", will=("will/delayed", "x", 0, DELAY), expiry=200))
        self.come(packets5.connect("c", will=("will/left", "x", 0, DELAY), expiry=200)).leave()
        self.world.turn(5)

    def test_each_witness_gets_all_wills_and_version_5_then_disconnect(self):
        for level in (4, 5):
            for witness_is_first in (True, False):
                with self.subTest(level=level, witness_is_first=witness_is_first):
                    self.start()
                    if witness_is_first:
                        witness = self.witness(level)
                    self.clients_with_wills()
                    if not witness_is_first:
                        witness = self.witness(level)
                    witness.packets()
                    self.world.loop.close()
                    found = witness.packets()
                    topics = sorted(data[4 : 4 + data[3]] for data in found[:3])
                    self.assertEqual(topics, [b"will/delayed", b"will/left", b"will/plain"])
                    self.assertEqual([data[0] for data in found[3:]], [0xE0] * (level == 5))
                    self.assertTrue(witness.stream.closed)

    def test_every_connection_is_closed(self):
        clients = [self.come(packets5.connect("a")), self.come(connect("b"))]
        clients.append(self.come(packets5.connect("c") + PINGREQ + b"\xf7\0"))  # it lingers
        self.world.loop.close()
        self.assertEqual([client.stream.closed for client in clients], [True] * 3)
        self.assertEqual(self.broker.conns.count, 0)
