"""The broker sends nothing after its DISCONNECT [5.0, 3.14]."""

import packets5
from broker_case import BrokerCase
from fakes import ERR, HUP
from packets import PINGREQ, PUBREL, ack, connect, publish

from slotmq import Limits


def broken_pipe(n):
    raise OSError(32)


class TestServerDisconnect(BrokerCase):
    """Nothing follows a DISCONNECT to a client [3.14.4-1], whatever the turn brings yet."""

    BAD = b"\xf3\0"
    WORD = b"\xe0\2\x81\0"

    def subscriber(self, qos):
        client = self.come(packets5.connect("a", expiry=60) + packets5.subscribe(1, "t", qos))
        client.packets()
        return client

    def ended(self, client):
        """What it is told until its connection is closed."""
        self.world.turn(3)
        found = client.packets()
        self.wait(2)
        self.assertTrue(client.stream.closed)
        self.assertEqual(client.packets(), [])
        return found

    def again(self):
        """The messages that its session was still owed, as first bytes."""
        client = self.come(packets5.connect("a", clean=False, expiry=60))
        return [data[0] for data in client.packets() if data[0] >> 4 == 3]

    def test_a_message_of_another_in_the_same_turn(self):
        for is_5 in (False, True):
            make, others = (packets5.publish, packets5.connect) if is_5 else (publish, connect)
            for qos in range(3):
                with self.subTest(is_5=is_5, qos=qos):
                    self.start()
                    client = self.subscriber(qos)
                    other = self.come(others("b"))
                    client.send(self.BAD)
                    other.send(make("t", b"x", qos, 1))
                    self.assertEqual(self.ended(client), [self.WORD])
                    # not sent yet, so without DUP
                    self.assertEqual(self.again(), [0x30 | qos << 1] if qos else [])

    def test_a_will_of_another_that_ends_in_the_same_turn(self):
        for qos in range(3):
            for size in (1, 3000):  # larger than the outgoing buffer: in parts
                with self.subTest(qos=qos, size=size):
                    self.start(Limits(max_packet=6000))
                    client = self.subscriber(qos)
                    will = ("t", "x" * size, qos, b"")
                    other = self.come(packets5.connect("b", will=will), 20)
                    client.send(self.BAD)
                    other.leave()
                    self.assertEqual(self.ended(client), [self.WORD])
                    self.assertEqual(self.again(), [0x30 | qos << 1] if qos else [])

    def test_its_own_in_the_same_read(self):
        for qos in (1, 2):
            with self.subTest(qos=qos):
                self.start()
                client = self.subscriber(qos)
                client.send(packets5.publish("t", b"x", qos, 1) + self.BAD + PINGREQ)
                found = self.ended(client)
                self.assertEqual([data[0] for data in found], [0x30 + (qos << 4), 0xE0])
                self.assertEqual(self.again(), [0x30 | qos << 1])

    def test_no_answer_to_what_follows(self):
        said = PINGREQ + ack(PUBREL, 9) + packets5.publish("t", b"x", 1, 1)
        for cut in (False, True):
            with self.subTest(cut=cut):
                self.start()
                client = self.subscriber(1)
                if cut:
                    client.send(self.BAD[:1])
                    self.world.turn()
                client.send((self.BAD[1:] if cut else self.BAD) + said)
                self.assertEqual(self.ended(client), [self.WORD])

    def test_one_that_lingers_makes_way_though_it_says_something_in_that_turn(self):
        self.start(Limits(connections=2))
        lingers = self.come(packets5.connect("a") + self.BAD)
        others = [self.come(packets5.connect("b")), self.come(packets5.connect("c"))]
        lingers.send(PINGREQ)
        other = self.come(packets5.connect("d"))  # beyond the two: it is told so
        self.assertTrue(lingers.stream.closed)
        self.assertEqual(other.packets()[0][:4], b"\x20\3\0\x88")
        self.assertEqual([client.stream.closed for client in others], [False, False])

    def test_its_socket_fails_before_the_last_bytes_have_left(self):
        client = self.come(packets5.connect("a"))
        client.stream.write_some = lambda n: None
        client.send(self.BAD)
        self.world.turn(2)
        self.assertFalse(client.stream.closed)
        client.stream.read = client.stream.write_some = broken_pipe
        client.stream.extra = ERR | HUP
        self.world.turn(2)
        self.assertTrue(client.stream.closed)

    def test_wills_of_a_stop_go_out_before_it(self):
        for qos in (0, 1):
            with self.subTest(qos=qos):
                self.start()
                witness = self.subscriber(qos)
                others = [self.come(packets5.connect("b", will=("t", "x", qos, b"")))]
                others.append(self.come(connect("c", will=("t", "x", qos))))
                self.world.loop.close()
                first = 0x30 | qos << 1
                found = [data[0] for data in witness.packets()]
                self.assertEqual(found, [first, first, 0xE0])
