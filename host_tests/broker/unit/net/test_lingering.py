"""A client that was sent the reason for its end has a second to read it; then it is closed."""

import sys

import packets5
from broker_case import BrokerCase
from fakes import ERR, HUP, IN, Listener, Stream, anything
from packets import PINGREQ, connect
from tables import counts

BAD = b"\xf3\0"
BYE = b"\xe0\2\x81\0"
REFUSED = b"\x20\3\0\x88\0"  # CONNACK: the server is unavailable


class Half(Stream):
    """A stream that notes when the broker shut its write side: after how many bytes."""

    shut = None

    def shutdown(self, how):
        assert self.shut is None, "twice"
        self.shut = len(self.received)


def noted(stream):
    """The value of `shut` after a half-close, which MicroPython does not have."""
    return None if sys.implementation.name == "micropython" else len(stream.received)


class LingeringCase(BrokerCase):
    LIMITS = {"connections": 3}  # noqa: RUF012

    def come(self, first, turns=3):
        return self.world.come(first, turns, Half(write=self.written))

    def lingering(self):
        return [state for state in self.broker.conns.state if state == 5]

    def lingers(self, name="lingers"):
        """A client that was sent DISCONNECT and does not close."""
        client = self.come(packets5.connect(name) + BAD)
        self.assertEqual(client.packets()[1:], [BYE])
        self.assertFalse(client.stream.closed)
        return client


class TestDuration(LingeringCase):
    def test_it_is_closed_after_a_second(self):
        client = self.lingers()
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

    def test_it_is_closed_when_the_client_closes_or_the_socket_fails(self):
        def fails(n):
            raise OSError(104)

        for ended, reads, events in (
            (True, anything, 0),
            (False, fails, IN),
            (False, lambda n: None, HUP),
        ):
            with self.subTest(ended=ended, events=events):
                client = self.lingers()
                client.stream.ended, client.stream.read = ended, reads
                client.stream.extra = events
                self.world.turn()
                self.assertTrue(client.stream.closed)

    def test_a_client_without_disconnect_is_closed_at_once(self):
        for first in (
            connect("old") + b"\xc1\0",
            packets5.connect("a") + b"\xe0\0",
            b"\x10\0",
            packets5.connect("b")[:7] + b"\3" + packets5.connect("b")[8:],
        ):
            client = self.come(first, 2)
            self.assertTrue(client.stream.closed, first)
            self.assertEqual(client.stream.shut, None)
        client = self.come(packets5.connect("a"))
        client.leave()
        self.world.turn(2)
        self.assertTrue(client.stream.closed)
        self.assertEqual(self.lingering(), [])

    def test_a_client_within_a_chunked_message_is_closed_at_once(self):
        """A DISCONNECT would be read as part of the message."""
        client = self.come(packets5.connect("s") + packets5.subscribe(1, "t", 0))
        client.stream.write_some = lambda n: None
        first = packets5.publish("t", b"x" * 1500)
        self.come(packets5.connect("p") + first, 30)
        self.come(packets5.connect("s"), 3)
        client.stream.write_some = self.written
        self.world.turn(3)
        self.assertTrue(client.stream.closed)
        self.assertFalse(bytes(client.stream.received).endswith(b"\xe0\2\x8e\0"))


class TestBlockedSocket(LingeringCase):
    def blocked(self):
        """A client whose socket takes nothing while DISCONNECT is put into its buffer."""
        client = self.come(packets5.connect("a"))
        client.packets()
        client.stream.write_some = lambda n: None
        client.send(PINGREQ + BAD)
        self.world.turn(3)
        self.assertEqual(client.packets(), [])
        self.assertEqual(len(self.lingering()), 1)
        self.assertEqual(client.stream.shut, None)
        return client

    def test_it_gets_disconnect_if_it_reads_within_the_second(self):
        client = self.blocked()
        self.world.turn(7, ms=100)
        client.stream.write_some = lambda n: 1  # byte by byte
        self.world.turn(2)
        self.assertEqual(client.stream.shut, None)  # only when all has left
        self.world.turn(8)
        self.assertEqual(client.packets(), [b"\xd0\0", BYE])
        self.assertEqual(client.stream.shut, noted(client.stream))
        self.assertFalse(client.stream.closed)
        self.world.turn(6, ms=100)
        self.assertTrue(client.stream.closed)

    def test_it_is_closed_after_a_second_without_disconnect(self):
        client = self.blocked()
        self.world.turn(13, ms=100)
        self.assertTrue(client.stream.closed)
        self.assertEqual(client.stream.shut, None)

    def test_a_socket_that_fails_is_closed(self):
        def broken(n):
            raise OSError(104)

        cases = ((False, anything, 0), (True, anything, 0), (False, broken, ERR | HUP))
        for ended, reads, events in cases:
            with self.subTest(ended=ended, events=events):
                client = self.blocked()
                client.stream.read, client.stream.write_some = reads, broken
                client.stream.ended, client.stream.extra = ended, events
                self.world.turn(3)
                self.assertTrue(client.stream.closed)


class TestSlotIsNeeded(LingeringCase):
    """Of three connections and one in reserve, some linger."""

    def test_waiting_connections_are_accepted_when_a_client_lingers(self):
        """The listener is not polled, and the clock does not advance."""
        served = [self.come(packets5.connect(name)) for name in "abc"]
        silent = self.come(b"")  # in the slot in reserve
        waiting = self.come(packets5.connect("d"))
        self.assertEqual(waiting.packets(), [])
        served[1].send(BAD)
        self.world.turn(5)
        self.assertEqual(waiting.packets()[0][3], 0)
        self.assertTrue(served[1].stream.closed)
        self.assertEqual(served[1].packets()[1:], [BYE])
        self.assertFalse(silent.stream.closed)

    def test_it_is_reused_although_its_client_sends_in_the_same_turn(self):
        """The poller has returned its events before its slot is reused."""
        for ended in (False, True):
            for n in (1, 2, 3):
                with self.subTest(ended=ended, n=n):
                    self.setUp()
                    served = [self.come(packets5.connect(name)) for name in "abc"[n:]]
                    lingering_ones = [self.lingers(f"lingers{i}") for i in range(n)]
                    lingering_ones.append(self.come(packets5.connect("d") + BAD))
                    for client in lingering_ones:
                        client.send(PINGREQ * 9)
                        client.stream.ended = ended
                    come = [self.come(packets5.connect("e"), 0) for _ in range(2)]
                    self.world.turn(6)
                    self.assertEqual(come[1].packets()[0][3], 0)
                    self.assertEqual([one.stream.closed for one in served], [False] * (3 - n))

    def test_a_listener_with_its_own_quota(self):
        listener = Listener()
        self.world.loop.listeners.add(listener, listener.accept, 1)
        self.at_first = counts(self.broker)
        answers = []
        for name in "aba":
            client = self.world.come(packets5.connect(name), 3, Half(), listener)
            answers.append(client.packets()[0])
        self.assertEqual(answers[1], REFUSED)
        self.assertEqual(answers[2][3], 0)
