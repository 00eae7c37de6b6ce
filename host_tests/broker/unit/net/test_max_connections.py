"""Which clients are accepted: max_connections, addresses that share it, the backlog."""

import unittest

from fakes import Client, Listener, Stream, World
from packets import connect

from slotmq import Broker, Limits, Settings

ACCEPTED = b"\x20\x02\0\0"
REFUSED = b"\x20\x02\0\3"


class TestListeners(unittest.TestCase):
    def setUp(self):
        settings = Settings()
        settings.sys_interval = 0
        self.world = World(Broker(Limits(connections=6), settings))
        self.listeners = [Listener(), Listener()]  # IPv4 and IPv6 of one listener, say
        self.world.loop.listeners.add(self.listeners[0], self.listeners[0].accept, 2)
        self.world.loop.listeners.add(self.listeners[1], self.listeners[1].accept, None)

    def knock(self, listener, said=b""):
        client = Client(Stream())
        client.send(said)
        self.listeners[listener].waiting.append(client.stream)
        self.world.turn(3)
        return client

    def knocks(self, listener, name):
        return self.knock(listener, connect(name))

    def test_all_its_addresses_are_counted_together(self):
        for listener in (0, 1):
            self.assertEqual(self.knocks(listener, f"in{listener}").packets(), [ACCEPTED])
        for listener in (0, 1):
            third = self.knocks(listener, "third")
            self.assertEqual(third.packets(), [REFUSED])
            self.assertTrue(third.stream.closed)
        self.assertEqual(self.world.broker.conns.refused, 2)
        self.world.client("by another listener")

    def test_one_that_leaves_makes_room(self):
        first = self.knocks(0, "first")
        self.knocks(0, "second")
        first.leave()
        self.world.turn(2)
        self.assertEqual(self.knocks(1, "third").packets(), [ACCEPTED])

    def test_a_client_takes_its_own_session_over_where_it_is_full(self):
        first, second = self.knocks(0, "first"), self.knocks(0, "second")
        self.assertEqual(self.knocks(1, "first").packets(), [ACCEPTED])
        self.assertTrue(first.stream.closed)
        self.assertFalse(second.stream.closed)

    def test_a_crowd_that_says_nothing_waits_and_leaves_others_their_slots(self):
        crowd = [self.knock(n % 2) for n in range(8)]
        self.assertEqual(sum(len(listener.waiting) for listener in self.listeners), 5)
        for n in range(4):
            self.world.client(f"other{n}")
        for client in crowd:  # each is served when its turn comes
            client.send(connect("crowd"))
            self.world.turn(3)
            self.assertIn(ACCEPTED, client.packets())
            client.leave()
            self.world.turn(3)
        self.assertEqual([listener.waiting for listener in self.listeners], [[], []])

    def test_nothing_remains_counted(self):
        clients = [self.knocks(n % 2, f"client{n}") for n in range(5)]
        for client in clients:
            client.leave()
        self.world.turn(4)
        quotas = [listener.quota for listener in self.world.loop.listeners.listeners]
        self.assertIs(quotas[1], quotas[2])
        self.assertEqual([quota[1:] for quota in quotas], [[0, 0]] * 3)
