"""The broker sends nothing after its DISCONNECT [5.0, 3.14]."""

import packets5
from broker_case import BrokerCase
from packets import PINGREQ, connect, publish

from slotmq import Limits


class TestServerDisconnect(BrokerCase):
    """Nothing follows the DISCONNECT to a client [3.14.4-1] in the same turn."""

    BAD = b"\xf3\0"
    BYE = b"\xe0\2\x81\0"

    def subscriber(self, qos):
        client = self.come(packets5.connect("a", expiry=60) + packets5.subscribe(1, "t", qos))
        client.packets()
        return client

    def ended(self, client):
        """What the client gets until its connection is closed."""
        self.world.turn(3)
        found = client.packets()
        self.wait(2)
        self.assertTrue(client.stream.closed)
        self.assertEqual(client.packets(), [])
        return found

    def again(self):
        """The first bytes of the messages that its session still gets."""
        client = self.come(packets5.connect("a", clean=False, expiry=60))
        return [data[0] for data in client.packets() if data[0] >> 4 == 3]

    def test_a_message_of_another_client_is_queued(self):
        for is_5 in (False, True):
            make, others = (packets5.publish, packets5.connect) if is_5 else (publish, connect)
            for qos in range(3):
                with self.subTest(is_5=is_5, qos=qos):
                    self.start()
                    client = self.subscriber(qos)
                    other = self.come(others("b"))
                    client.send(self.BAD)
                    other.send(make("t", b"x", qos, 1))
                    self.assertEqual(self.ended(client), [self.BYE])
                    # It was not sent, so it has no DUP.
                    self.assertEqual(self.again(), [0x30 | qos << 1] if qos else [])

    def test_a_will_of_another_client_is_queued(self):
        for qos in range(3):
            for size in (1, 3000):  # larger than the outgoing buffer: chunked
                with self.subTest(qos=qos, size=size):
                    self.start(Limits(max_packet=6000))
                    client = self.subscriber(qos)
                    will = ("t", "x" * size, qos, b"")
                    other = self.come(packets5.connect("b", will=will), 20)
                    client.send(self.BAD)
                    other.leave()
                    self.assertEqual(self.ended(client), [self.BYE])
                    self.assertEqual(self.again(), [0x30 | qos << 1] if qos else [])

    def test_its_own_messages_before_the_violation_are_acknowledged_and_queued(self):
        for qos in (1, 2):
            with self.subTest(qos=qos):
                self.start()
                client = self.subscriber(qos)
                client.send(packets5.publish("t", b"x", qos, 1) + self.BAD + PINGREQ)
                found = self.ended(client)
                self.assertEqual([data[0] for data in found], [0x30 + (qos << 4), 0xE0])
                self.assertEqual(self.again(), [0x30 | qos << 1])
