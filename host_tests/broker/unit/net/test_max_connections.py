"""Which clients are accepted: max_connections, addresses that share it, the backlog."""

import unittest

from fakes import Listener, World
from packets import connect

from slotmq import Broker, Limits, Settings

ACCEPTED = b"\x20\x02\0\0"
REFUSED = b"\x20\x02\0\3"


class TestListeners(unittest.TestCase):
    def setUp(self):
        self.world = World(Broker(Limits(connections=6), Settings(sys_interval=0)))
        self.listeners = [Listener(), Listener()]  # for example IPv4 and IPv6 of one listener
        self.world.loop.listeners.add(self.listeners[0], self.listeners[0].accept, 2)
        self.world.loop.listeners.add(self.listeners[1], self.listeners[1].accept, None)

    def open(self, listener, first=b""):
        """A connection to one of the two addresses."""
        return self.world.come(first, listener=self.listeners[listener])

    def connect(self, listener, name):
        return self.open(listener, connect(name))

    def test_the_addresses_of_a_listener_have_one_quota(self):
        for listener in (0, 1):
            self.assertEqual(self.connect(listener, f"in{listener}").packets(), [ACCEPTED])
        for listener in (0, 1):
            third = self.connect(listener, "third")
            self.assertEqual(third.packets(), [REFUSED])
            self.assertTrue(third.stream.closed)
        self.assertEqual(self.world.broker.conns.refused, 2)
        self.world.client("by another listener")

    def test_a_client_that_leaves_frees_its_place(self):
        first = self.connect(0, "first")
        self.connect(0, "second")
        first.leave()
        self.world.turn(2)
        self.assertEqual(self.connect(1, "third").packets(), [ACCEPTED])

    def test_a_takeover_needs_no_free_place(self):
        first, second = self.connect(0, "first"), self.connect(0, "second")
        self.assertEqual(self.connect(1, "first").packets(), [ACCEPTED])
        self.assertTrue(first.stream.closed)
        self.assertFalse(second.stream.closed)

    def test_silent_connections_leave_slots_to_other_listeners(self):
        silent = [self.open(n % 2) for n in range(8)]
        self.assertEqual(sum(len(listener.waiting) for listener in self.listeners), 5)
        for n in range(4):
            self.world.client(f"other{n}")
        for client in silent:  # each is served when its turn comes
            client.send(connect("silent"))
            self.world.turn(3)
            self.assertIn(ACCEPTED, client.packets())
            client.leave()
            self.world.turn(3)
        self.assertEqual([listener.waiting for listener in self.listeners], [[], []])

    def test_after_all_have_left_nothing_is_counted(self):
        clients = [self.connect(n % 2, f"client{n}") for n in range(5)]
        for client in clients:
            client.leave()
        self.world.turn(4)
        quotas = [listener.quota for listener in self.world.loop.listeners.listeners]
        self.assertIs(quotas[1], quotas[2])
        self.assertEqual([quota[1:3] for quota in quotas], [[0, 0]] * 3)
