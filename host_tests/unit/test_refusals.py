"""The log warns of each table that refuses or drops: at once, then once a minute, counted."""

import unittest

from fakes import Client, Stream, World
from packets import connect, publish

from slotmq import Broker, Limits, Settings, epoch, ondemand

WARNING = 2
SOON, MINUTE = 10, 60  # seconds
EPOCH = 259200000  # tenths of a second
LINE = "Table %s: %d refused or dropped (see %s)."
TABLES = """\
conns.refused connections
sessions.refused sessions
sessions.ids_refused received
subscriptions.refused subscriptions, topic_bytes, levels
subscriptions.nodes_refused nodes, node_bytes
messages.refused messages, message_bytes
deliveries.refused deliveries, max_queued_messages, max_session_share, max_offline_share
retained.refused retained
five.shares.refused shares
five.aliases.refused aliases"""


class Refusals(unittest.TestCase):
    def setUp(self):
        self.start()

    def start(self, mask=WARNING, versions=5):
        limits = Limits(connections=1, retained=1)
        self.broker = Broker(limits, Settings(sys_interval=0, mqtt_versions=versions))
        self.world = World(self.broker)
        self.lines = []
        self.broker.log = lambda bit, line: self.lines.append((bit, line))
        self.broker.log_mask = mask
        self.client = self.world.client("c")
        self.client.send(publish("t", b"the only one", retain=True))
        self.seconds(1)

    def seconds(self, n):
        self.world.turn(n * 10, ms=100)

    def told(self, *expected):
        """That was said since the last time, and nothing else: (table, how often)."""
        self.assertEqual(self.lines, [(WARNING, LINE % (t, n, t)) for t, n in expected])
        self.lines.clear()

    def refuse(self, times=1):
        """So many retained messages for which there is no place."""
        for _ in range(times):
            self.client.send(publish("u", b"x", retain=True))
            self.world.turn(1)

    def knock(self):
        """One client more than there are connections."""
        client = Client(Stream())
        client.send(connect("d"))
        self.world.listener.waiting.append(client.stream)
        self.world.turn(3)
        self.assertEqual(client.stream.received, b"\x20\x02\0\3")


class TestWhen(Refusals):
    def test_at_once_then_once_a_minute_with_the_count(self):
        self.seconds(2 * MINUTE)
        self.told()
        for _ in range(2):
            self.refuse()
            self.seconds(1)
            self.told(("retained", 1))
            self.refuse(3)
            self.seconds(MINUTE - 4)
            self.told()
            self.seconds(5 + SOON)
            self.told(("retained", 3))
            self.seconds(3 * MINUTE)
            self.told()

    def test_while_it_goes_on_once_a_minute(self):
        for _ in range(3 * MINUTE):
            self.refuse()
            self.seconds(1)
        self.assertIn(len(self.lines), (3, 4))

    def test_another_table_does_not_wait_for_that_minute(self):
        self.refuse()
        self.seconds(1)
        self.told(("retained", 1))
        self.refuse()
        self.knock()
        self.seconds(SOON)
        self.told(("connections", 1))
        self.seconds(MINUTE)
        self.told(("retained", 1))
        self.seconds(2 * MINUTE)
        self.told()

    def test_nothing_is_done_for_a_log_without_warnings(self):
        self.start(mask=0)
        loads, ondemand.take = ondemand.take, None
        try:
            self.refuse()
            self.seconds(MINUTE)
        finally:
            ondemand.take = loads
        self.told()
        self.broker.log_mask = WARNING
        self.seconds(1)
        self.told(("retained", 1))

    def test_what_found_no_heap_is_told_later(self):
        tries = []

        def fails(bit, line):
            tries.append(line)
            raise MemoryError

        works, self.broker.log = self.broker.log, fails
        self.refuse()
        self.seconds(1)
        self.broker.log = works
        self.refuse()
        self.seconds(SOON)
        self.told(("retained", 2))
        self.assertEqual(len(tries), 1)

    def test_the_clocks_zero_moves_meanwhile(self):
        epoch.take(self.broker, self.broker.now - (EPOCH - 50))
        self.seconds(1)
        self.refuse()
        self.seconds(1)
        self.told(("retained", 1))
        self.refuse()
        self.seconds(SOON)
        self.assertLess(self.broker.now, 1000)
        self.told()
        self.knock()
        self.seconds(SOON)
        self.told(("connections", 1))
        self.seconds(MINUTE - 2 * SOON - 3)
        self.told()
        self.seconds(SOON + 3)
        self.told(("retained", 1))


class TestWhich(Refusals):
    def table(self, path):
        found = self.broker
        for part in path.split(".")[:-1]:
            found = getattr(found, part)
        return found, path.split(".")[-1]

    def test_each_table(self):
        self.seconds(2 * SOON)
        expected = []
        rows = [row.split(" ", 1) for row in TABLES.split("\n")]
        for i in range(len(rows)):
            path, limits = rows[i]
            table, name = self.table(path)
            setattr(table, name, getattr(table, name) + 1 + i)
            expected.append((WARNING, LINE % (limits.split(",")[0], 1 + i, limits)))
        self.seconds(1)
        self.assertEqual(self.lines, expected)
        self.seconds(2 * MINUTE)
        self.assertEqual(self.lines, expected)

    def test_without_version_5(self):
        self.start(versions=3)
        self.refuse(2)
        self.seconds(1)
        self.lines.clear()
        self.knock()
        self.seconds(SOON)
        self.told(("connections", 1))

    def test_while_the_journal_is_full_that_may_be_why(self):
        self.broker.full = 1
        self.refuse()
        self.seconds(1)
        why = LINE % ("retained", 1, "retained")
        why = why.replace(")", ", the journal's room)")
        self.assertEqual(self.lines, [(WARNING, why)])

    def test_more_often_than_a_column_counts(self):
        self.broker.retained.refused = (1 << 30) - 3
        self.seconds(1)
        self.told(("retained", (1 << 30) - 3))
        self.seconds(MINUTE)
        self.broker.retained.refused += 2  # still a small integer
        self.seconds(SOON)
        self.told(("retained", 2))
