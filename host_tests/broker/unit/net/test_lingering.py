"""A client that was sent the reason for its end has a second to read it; then it is closed."""

import sys

import packets5
from broker_case import BrokerCase
from fakes import Client, Listener, Stream
from packets import PINGREQ, connect
from tables import counts

from slotmq import Limits

BAD = b"\xf3\0"
WORD = b"\xe0\2\x81\0"
REFUSED = b"\x20\3\0\x88\0"  # CONNACK: the server is unavailable


class Half(Stream):
    """A stream that notes when the broker shut its write side: after how many bytes."""

    shut = None

    def shutdown(self, how):
        assert self.shut is None, "twice"
        self.shut = len(self.received)


def noted(stream):
    """What `shut` is where sockets can do that; those of MicroPython cannot."""
    return None if sys.implementation.name == "micropython" else len(stream.received)


class Lingering(BrokerCase):
    def setUp(self):
        self.start(Limits(connections=3))

    def come(self, said, turns=3):
        client = Client(Half(write=self.written))
        self.world.listener.waiting.append(client.stream)
        client.send(said)
        self.world.turn(turns)
        return client

    def lingering(self):
        return [state for state in self.broker.conns.state if state == 5]

    def told(self, name="told"):
        """A client that has been told to go, and stays."""
        client = self.come(packets5.connect(name) + BAD)
        self.assertEqual(client.packets()[1:], [WORD])
        self.assertFalse(client.stream.closed)
        return client


class TestDuration(Lingering):
    def test_a_second(self):
        client = self.told()
        self.assertEqual(len(self.lingering()), 1)
        self.assertEqual(client.stream.shut, noted(client.stream))
        self.world.turn(9, ms=100)
        self.assertFalse(client.stream.closed)
        client.send(PINGREQ * 50)
        self.world.turn()
        self.assertEqual(bytes(client.stream.sent), b"")
        self.world.turn(4, ms=100)
        self.assertTrue(client.stream.closed)
        self.assertEqual(client.packets(), [])
        self.assertEqual(self.lingering(), [])

    def test_or_until_the_client_closes(self):
        client = self.told()
        client.leave()
        self.world.turn()
        self.assertTrue(client.stream.closed)

    def test_who_was_told_nothing_does_not(self):
        for said in (
            connect("old") + b"\xc1\0",
            packets5.connect("a") + b"\xe0\0",
            b"\x10\0",
            packets5.connect("b")[:7] + b"\3" + packets5.connect("b")[8:],
        ):
            client = self.come(said, 2)
            self.assertTrue(client.stream.closed, said)
            self.assertEqual(client.stream.shut, None)
        client = self.come(packets5.connect("a"))
        client.leave()
        self.world.turn(2)
        self.assertTrue(client.stream.closed)
        self.assertEqual(self.lingering(), [])

    def test_nor_who_is_in_the_midst_of_a_message(self):
        """A DISCONNECT in there would be the message's."""
        client = self.come(packets5.connect("s") + packets5.subscribe(1, "t", 0))
        client.stream.write_some = lambda n: None
        said = packets5.publish("t", b"x" * 1500)
        self.come(packets5.connect("p") + said, 30)
        self.come(packets5.connect("s"), 3)
        client.stream.write_some = self.written
        self.world.turn(3)
        self.assertTrue(client.stream.closed)
        self.assertFalse(bytes(client.stream.received).endswith(b"\xe0\2\x8e\0"))

    def test_a_refusal_may_be_read_too(self):
        for name in "abc":
            self.come(packets5.connect(name))
        client = self.come(packets5.connect("d"))
        self.assertEqual(client.packets(), [REFUSED])
        self.assertFalse(client.stream.closed)
        self.wait(2)
        self.assertTrue(client.stream.closed)


class TestBlockedSocket(Lingering):
    def blocked(self):
        """A client whose socket takes nothing while its last packet is put."""
        client = self.come(packets5.connect("a"))
        client.packets()
        client.stream.write_some = lambda n: None
        client.send(PINGREQ + BAD)
        self.world.turn(3)
        self.assertEqual(client.packets(), [])
        self.assertEqual(len(self.lingering()), 1)
        self.assertEqual(client.stream.shut, None)
        return client

    def test_it_is_told_when_it_reads_within_the_second(self):
        client = self.blocked()
        self.world.turn(7, ms=100)
        client.stream.write_some = lambda n: 1  # byte by byte
        self.world.turn(2)
        self.assertEqual(client.stream.shut, None)  # only when all has left
        self.world.turn(8)
        self.assertEqual(client.packets(), [b"\xd0\0", WORD])
        self.assertEqual(client.stream.shut, noted(client.stream))
        self.assertFalse(client.stream.closed)
        self.world.turn(6, ms=100)
        self.assertTrue(client.stream.closed)

    def test_and_not_waited_for_longer(self):
        client = self.blocked()
        self.world.turn(13, ms=100)
        self.assertTrue(client.stream.closed)
        self.assertEqual(client.stream.shut, None)

    def test_a_socket_that_breaks_ends_it(self):
        def broken(n):
            raise OSError(104)

        for ended in (False, True):  # the other way, too
            with self.subTest(ended=ended):
                client = self.blocked()
                client.stream.write_some = broken
                client.stream.ended = ended
                self.world.turn(3)
                self.assertTrue(client.stream.closed)


class TestSlotIsNeeded(Lingering):
    """Of three connections and one in reserve, some linger."""

    def test_a_takeover_at_once(self):
        old = self.come(packets5.connect("me"))
        for name in "bc":
            self.come(packets5.connect(name))
        refused = self.come(packets5.connect("d"))  # in the slot in reserve, where it lingers
        self.assertEqual(refused.packets(), [REFUSED])
        self.assertEqual(len(self.lingering()), 1)
        new = self.come(packets5.connect("me"))
        self.assertEqual(new.packets()[0][3], 0)
        self.assertTrue(refused.stream.closed)
        self.assertEqual(old.packets()[1:], [b"\xe0\2\x8e\0"])
        again = self.come(packets5.connect("me"))  # and the old one makes way for the next
        self.assertEqual(again.packets()[0][3], 0)
        self.assertTrue(old.stream.closed)

    def test_one_after_the_other_is_refused_at_once(self):
        for name in "abc":
            self.come(packets5.connect(name))
        for _ in range(9):
            self.assertEqual(self.come(packets5.connect("d")).packets(), [REFUSED])

    def test_those_that_wait_come_in_when_somebody_lingers(self):
        """The listener is stopped, and the clock does not go on."""
        served = [self.come(packets5.connect(name)) for name in "abc"]
        silent = self.come(b"")  # in the slot in reserve
        waiting = self.come(packets5.connect("d"))
        self.assertEqual(waiting.packets(), [])
        served[1].send(BAD)
        self.world.turn(5)
        self.assertEqual(waiting.packets()[0][3], 0)
        self.assertTrue(served[1].stream.closed)
        self.assertEqual(served[1].packets()[1:], [WORD])
        self.assertFalse(silent.stream.closed)

    def test_one_that_is_heard_in_the_same_turn(self):
        """What the poller has told of it already does no harm."""
        for ended in (False, True):
            for n in (1, 2, 3):
                with self.subTest(ended=ended, n=n):
                    self.setUp()
                    served = [self.come(packets5.connect(name)) for name in "abc"[n:]]
                    told = [self.told(f"told{i}") for i in range(n)]
                    told.append(self.come(packets5.connect("d") + BAD))
                    for client in told:
                        client.send(PINGREQ * 9)
                        client.stream.ended = ended
                    come = [self.come(packets5.connect("e"), 0) for _ in range(2)]
                    self.world.turn(6)
                    self.assertEqual(come[1].packets()[0][3], 0)
                    self.assertEqual([one.stream.closed for one in served], [False] * (3 - n))

    def test_by_a_listener_with_a_bound_of_its_own(self):
        listener = Listener()
        self.world.loop.listeners.add(listener, listener.accept, 1)
        self.at_first = counts(self.broker)
        clients = []
        for name, said in (("a", b""), ("b", b""), ("a", b"")):
            clients.append(Client(Half()))
            clients[-1].send(packets5.connect(name) + said)
            listener.waiting.append(clients[-1].stream)
            self.world.turn(3)
        self.assertEqual(clients[1].packets(), [REFUSED])
        self.assertEqual(clients[2].packets()[0][3], 0)
