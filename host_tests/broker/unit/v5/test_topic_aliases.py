"""Topic aliases of each connection, in both directions; all blocks are returned."""

import unittest

from slotmq import Limits
from slotmq.v5.expired_slots import search
from slotmq.v5.topic_aliases import Aliases

MOST = 3
BLOCK = 16
BLOCKS = 3 * MOST * 64 // BLOCK  # as many as the longest topics need
TOPICS = (b"some/topic", b"another", b"t/" + b"x" * 40, b"four")


class TestAliases(unittest.TestCase):
    def setUp(self):
        limits = Limits(connections=2, aliases=MOST, topic_bytes=64, message_block=BLOCK)
        self.aliases = Aliases(limits, bytearray(64))
        self.arena = self.aliases.arena  # a block for each alias of each connection
        self.work = bytearray(100)

    def set(self, conn, alias, topic):
        return self.aliases.set(conn, alias, bytearray(b"xx" + topic), 2, len(topic))

    def get(self, conn, alias):
        n = self.aliases.get(conn, alias, self.work, 5)
        return bytes(self.work[5 : 5 + n])

    def outgoing(self, conn, topic):
        """(alias, does the client know it?)"""
        alias = self.aliases.outgoing(conn, bytearray(b"xx" + topic), 2, len(topic))
        return alias, self.aliases.found[0]

    def give(self, conn, alias, topic):
        return self.aliases.give(conn, alias, bytearray(b"xx" + topic), 2, len(topic))

    def tearDown(self):
        for conn in range(3):
            self.aliases.forget(conn)
        self.assertEqual(self.arena.free_blocks(), BLOCKS)

    def test_each_connection_has_the_topic_last_set_for_each_alias(self):
        for conn in range(3):
            for alias in range(1, MOST + 1):
                self.assertEqual(self.get(conn, alias), b"")
                for topic in TOPICS:
                    self.assertTrue(self.set(conn, alias, topic + b"%d%d" % (conn, alias)))
        self.aliases.forget(1)
        for conn, is_there in ((0, True), (1, False), (2, True)):
            for alias in range(1, MOST + 1):
                expected = TOPICS[-1] + b"%d%d" % (conn, alias) if is_there else b""
                self.assertEqual(self.get(conn, alias), expected)

    def test_a_full_arena_refuses_and_forgets_the_alias(self):
        taken = self.arena.take((BLOCKS - 1) * BLOCK)
        self.assertTrue(self.set(0, 1, b"a" * BLOCK))
        self.assertFalse(self.set(0, 2, b"b"))
        self.assertEqual(self.aliases.refused, 1)
        self.assertEqual(self.get(0, 1), b"a" * BLOCK)
        self.assertEqual(self.get(0, 2), b"")
        self.assertFalse(self.set(0, 1, b"a" * (BLOCK + 1)))  # the old topic is forgotten
        self.assertEqual(self.get(0, 1), b"")
        self.assertTrue(self.set(0, 1, b"again"))
        self.arena.drop(taken)

    def test_aliases_of_the_broker_make_way_for_those_of_clients(self):
        self.aliases.offered[0] = 1
        taken = self.arena.take((BLOCKS - 1) * BLOCK)
        self.assertTrue(self.give(0, 1, b"given"))
        self.assertTrue(self.set(1, 1, b"wanted"))
        self.assertEqual(self.outgoing(0, b"given"), (1, 0))
        self.arena.drop(taken)

    def test_the_connection_whose_aliases_take_most_blocks(self):
        self.assertEqual(search(self.aliases, 1, 1), 1)
        self.set(0, 1, b"a" * 33)  # three blocks
        for n, wanted in ((1, 0), (32, 0), (33, 2), (48, 2), (64, 2)):
            self.assertEqual(search(self.aliases, 2, n), wanted, n)
        self.set(2, MOST, b"b")
        for n, wanted in ((1, 0), (16, 0), (17, 2)):  # equal: the connection that asks
            self.assertEqual(search(self.aliases, 2, n), wanted, n)
        self.set(1, 1, b"c" * 17)
        self.set(1, 2, b"d" * 17)
        self.assertEqual(search(self.aliases, 2, 1), 1)
        self.assertEqual(search(self.aliases, 0, 16), 0)
        self.aliases.offered[0] = 1
        self.give(0, 1, b"e" * 64)  # aliases of the broker do not count
        self.assertEqual(search(self.aliases, 2, 1), 1)
        self.aliases.forget(1)
        self.assertEqual(search(self.aliases, 2, 1), 0)

    def test_without_topic_alias_maximum_the_broker_assigns_none(self):
        self.assertEqual(self.outgoing(0, TOPICS[0]), (0, 0))

    def test_the_first_long_topics_get_an_alias(self):
        self.aliases.offered[0] = 2
        self.assertEqual(self.outgoing(0, b"abc"), (0, 0))
        for alias, topic in ((1, TOPICS[3]), (2, TOPICS[0])):
            self.assertEqual(self.outgoing(0, topic), (alias, 0))
            self.assertTrue(self.give(0, alias, topic))
            self.assertEqual(self.outgoing(0, topic), (alias, 1))
        self.assertEqual(self.outgoing(0, TOPICS[1]), (0, 0))
        self.assertEqual(self.outgoing(0, TOPICS[3]), (1, 1))

    def test_topics_of_the_same_length_are_distinguished(self):
        self.aliases.offered[0] = MOST
        self.give(0, 1, b"same/length/a")
        for other in (b"same/length/b", b"Same/length/a", b"same/lengthxa"):
            self.assertEqual(self.outgoing(0, other), (2, 0))
        self.assertEqual(self.outgoing(0, b"same/length/a"), (1, 1))

    def test_one_that_could_not_be_kept_is_given_again(self):
        self.aliases.offered[0] = 1
        taken = self.arena.take(BLOCKS * BLOCK)
        self.assertEqual(self.outgoing(0, TOPICS[0]), (1, 0))
        self.assertFalse(self.give(0, 1, TOPICS[0]))
        self.assertEqual(self.outgoing(0, TOPICS[0]), (1, 0))
        self.assertEqual(self.outgoing(0, TOPICS[1]), (1, 0))
        self.arena.drop(taken)
        self.assertTrue(self.give(0, 1, TOPICS[1]))
        self.assertEqual(self.outgoing(0, TOPICS[1]), (1, 1))

    def test_the_two_directions_are_separate(self):
        self.aliases.offered[0] = 1
        self.set(0, 1, b"inward")
        self.assertEqual(self.outgoing(0, b"inward"), (1, 0))
        self.give(0, 1, b"outward")
        self.assertEqual(self.get(0, 1), b"inward")

    def test_forget_frees_all_blocks_of_a_connection(self):
        self.aliases.offered[0] = MOST
        for alias in range(1, MOST + 1):
            self.set(0, alias, b"in%d" % alias)
            self.give(0, alias, b"out%d" % alias)
        self.assertEqual(self.arena.free_blocks(), BLOCKS - 2 * MOST)
        self.aliases.forget(0)
        self.assertEqual(self.arena.free_blocks(), BLOCKS)
        self.assertEqual(self.outgoing(0, b"out1"), (0, 0))
        self.assertEqual(self.get(0, 1), b"")
        self.aliases.forget(0)  # twice does no harm

    def test_a_table_of_size_0(self):
        aliases = Aliases(Limits(aliases=0), bytearray(64))
        aliases.offered[0] = 0
        self.assertEqual(aliases.outgoing(0, b"some/topic", 0, 10), 0)
        aliases.forget(0)
