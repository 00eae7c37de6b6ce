"""The log warns of each table that refuses or drops: at once, then once a minute with a count."""

import unittest

import packets
import packets5
from fakes import World
from packets import connect, publish

from slotmq import Broker, Limits, Settings
from slotmq.platform import ondemand
from slotmq.tables import epoch

WARNING = 2
SOON, MINUTE = 10, 60  # seconds
EPOCH = 259200000  # tenths of a second
LINE = "Table %s: %d refused or dropped (see %s)."
TABLES = """\
conns.refused connections, tls_connections
sessions.refused sessions
sessions.ids_refused received
subscriptions.refused subscriptions, topic_bytes, levels
subscriptions.nodes_refused nodes, name_bytes
messages.refused messages, message_bytes
deliveries.refused deliveries, max_queued_messages, max_session_share, max_offline_share
retained.refused retained, retained_name_bytes
five.shares.refused shares
five.aliases.refused aliases"""


class FullTablesCase(unittest.TestCase):
    limits = {"connections": 1, "retained": 1}  # noqa: RUF012

    def setUp(self):
        self.start()

    def start(self, mask=WARNING, versions=5, **values):
        settings = Settings(sys_interval=0, mqtt_versions=versions, **values)
        self.broker = Broker(Limits(**self.limits), settings)
        self.world = World(self.broker)
        self.lines = []
        self.broker.log = lambda bit, line: self.lines.append((bit, line))
        self.broker.log_mask = mask
        self.client = self.world.client("c")
        self.client.send(publish("t", b"the only one", retain=True))
        self.seconds(1)

    def seconds(self, n):
        self.world.turn(n * 10, ms=100)

    def check_logged(self, *expected):
        """Exactly these entries were logged since the last call: (table, how often)."""
        why = {"retained": "retained, retained_name_bytes"}
        why["connections"] = "connections, tls_connections"
        lines = [(WARNING, LINE % (t, n, why.get(t, t))) for t, n in expected]
        self.assertEqual(self.lines, lines)
        self.lines.clear()

    def refuse(self, times=1):
        """Publish so many retained messages; the table is full."""
        for _ in range(times):
            self.client.send(publish("u", b"x", retain=True))
            self.world.turn(1)

    def refuse_client(self):
        """Connect one client more than there are connections."""
        client = self.world.come(connect("d"))
        self.assertEqual(client.stream.received, b"\x20\x02\0\3")


class TestWhen(FullTablesCase):
    def test_at_once_then_once_a_minute_with_the_count(self):
        self.seconds(2 * MINUTE)
        self.check_logged()
        for _ in range(2):
            self.refuse()
            self.seconds(1)
            self.check_logged(("retained", 1))
            self.refuse(3)
            self.seconds(MINUTE - 4)
            self.check_logged()
            self.seconds(5 + SOON)
            self.check_logged(("retained", 3))
            self.seconds(3 * MINUTE)
            self.check_logged()

    def test_continuous_refusals_are_logged_once_a_minute(self):
        for _ in range(3 * MINUTE):
            self.refuse()
            self.seconds(1)
        self.assertIn(len(self.lines), (3, 4))

    def test_another_table_is_logged_within_that_minute(self):
        self.refuse()
        self.seconds(1)
        self.check_logged(("retained", 1))
        self.refuse()
        self.refuse_client()
        self.seconds(SOON)
        self.check_logged(("connections", 1))
        self.seconds(MINUTE)
        self.check_logged(("retained", 1))
        self.seconds(2 * MINUTE)
        self.check_logged()

    def test_without_warnings_no_module_is_loaded(self):
        self.start(mask=0)
        loads, ondemand.take = ondemand.take, None
        try:
            self.refuse()
            self.seconds(MINUTE)
        finally:
            ondemand.take = loads
        self.check_logged()
        self.broker.log_mask = WARNING
        self.seconds(1)
        self.check_logged(("retained", 1))

    def test_after_a_memory_error_it_is_logged_later(self):
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
        self.check_logged(("retained", 2))
        self.assertEqual(len(tries), 1)

    def test_a_new_epoch_meanwhile_does_not_change_it(self):
        epoch.take(self.broker, self.broker.now - (EPOCH - 50))
        self.seconds(1)
        self.refuse()
        self.seconds(1)
        self.check_logged(("retained", 1))
        self.refuse()
        self.seconds(SOON)
        self.assertLess(self.broker.now, 1000)
        self.check_logged()
        self.refuse_client()
        self.seconds(SOON)
        self.check_logged(("connections", 1))
        self.seconds(MINUTE - 2 * SOON - 3)
        self.check_logged()
        self.seconds(SOON + 3)
        self.check_logged(("retained", 1))


class TestWhich(FullTablesCase):
    def table(self, path):
        found = self.broker
        for part in path.split(".")[:-1]:
            found = getattr(found, part)
        return found, path.split(".")[-1]

    def test_each_table_has_its_limits(self):
        self.seconds(2 * SOON)
        expected = []
        rows = [row.split(" ", 1) for row in TABLES.split("\n")]
        for i in range(len(rows)):
            path, limits = rows[i]
            table, name = self.table(path)
            setattr(table, name, getattr(table, name) + 1 + i)
            expected.append((WARNING, LINE % (limits.split(",")[0], 1 + i, limits)))
        self.broker.stats[21] += 9
        line = "Outgoing buffers: 9 QoS 0 dropped (see tx_bytes, message_bytes)."
        expected.append((WARNING, line))
        self.seconds(1)
        self.assertEqual(self.lines, expected)
        self.seconds(2 * MINUTE)
        self.assertEqual(self.lines, expected)

    def test_with_mqtt_versions_3(self):
        self.start(versions=3)
        self.refuse(2)
        self.seconds(1)
        self.lines.clear()
        self.refuse_client()
        self.seconds(SOON)
        self.check_logged(("connections", 1))

    def test_a_full_journal_is_named_as_a_possible_reason(self):
        self.broker.journal_full = True
        self.refuse()
        self.seconds(1)
        why = LINE % ("retained", 1, "retained, retained_name_bytes")
        why = why.replace(")", ", the journal's space)")
        self.assertEqual(self.lines, [(WARNING, why)])

    def test_counts_up_to_the_largest_small_integer(self):
        self.broker.retained.refused = (1 << 30) - 3
        self.seconds(1)
        self.check_logged(("retained", (1 << 30) - 3))
        self.seconds(MINUTE)
        self.broker.retained.refused += 2  # still a small integer
        self.seconds(SOON)
        self.check_logged(("retained", 2))


# Limits, settings, the sizes of what is published at QoS 1 for a client that is away (0: retained,
# for nobody), the table, and what its line says beyond the number.
SMALL = {"messages": 9, "message_bytes": 4096, "deliveries": 8, "inflight": 4, "queued": 9}
SMALL |= {"max_packet": 1024, "retained": 20}
SHARE = ", the first for 'r': max_session_share 50 of limit "
BOUNDS = (
    ({"messages": 4}, {}, 5 * [0], "messages", ": limit messages 4, all in use"),
    (
        {"message_bytes": 1024},
        {},
        [-800, -300],
        "messages",
        ": limit message_bytes 1024, 896 in use, 305 needed",
    ),
    ({}, {}, 7 * [600], "deliveries", SHARE + "message_bytes 4096, it has 1920, 603 needed"),
    ({"deliveries": 80}, {}, 7 * [1], "deliveries", SHARE + "messages 9, it has 4, 1 needed"),
    ({"messages": 50}, {}, 7 * [1], "deliveries", SHARE + "deliveries 8, it has 4, 1 needed"),
    (
        {},
        {"max_offline_share": 10},
        7 * [1],
        "deliveries",
        ", the first for 'r': max_offline_share 10, and it has no connection",
    ),
    (
        {},
        {"max_queued_messages": 2},
        7 * [1],
        "deliveries",
        ", the first for 'r': max_queued_messages 2, max_inflight_messages 3, 2 wait",
    ),
    (
        {"deliveries": 80, "messages": 80},
        {"max_queued_messages": 9, "max_queued_bytes": 100},
        7 * [90],
        "deliveries",
        ", the first for 'r': max_queued_bytes 100",
    ),
)


class TestBounds(FullTablesCase):
    """The line names which bound was reached, its value, and what was needed."""

    def test_each_is_named_with_its_value_and_what_was_needed(self):
        for limits, settings, sizes, table, words in BOUNDS:
            for kind in (packets, packets5):
                with self.subTest(words=words, kind=kind.__name__):
                    self.limits = {"connections": 2} | SMALL | limits
                    self.start(max_inflight_messages=3, **settings)
                    self.check_bound(kind, sizes, table, f" refused or dropped{words}.")

    def check_bound(self, kind, sizes, table, end):
        begin = f"Table {table}: "
        reader = self.world.come(connect("r", clean=False))
        reader.send(packets.subscribe(1, "q", 1))
        self.world.turn(2)
        reader.leave()
        self.seconds(11)
        self.assertEqual(self.lines, [])
        self.client.leave()
        writer = self.world.come(kind.connect("w"))
        for n, size in enumerate(sizes):
            topic = "q" if size > 0 else f"w/{n}"
            writer.send(kind.publish(topic, bytes(abs(size) or 1), 1, n + 1, retain=size <= 0))
            self.world.turn(4)
        self.seconds(1)
        (line,) = [line for _, line in self.lines]
        self.assertTrue(line.startswith(begin) and line.endswith(end), line)
        # A minute later the same again
        topic = "q" if sizes[-1] > 0 else "w/x"
        writer.send(kind.publish(topic, bytes(abs(sizes[-1]) or 1), 1, 99, retain=topic != "q"))
        self.seconds(MINUTE + 1)
        self.assertEqual(self.lines[1:], [(WARNING, begin + "1" + end)])


class TestPayloads(FullTablesCase):
    """Payloads over message_size_limit; a client of version 3 gets no reason."""

    def check_denied(self, *expected):
        line = "Denied %s: 21 bytes, see message_size_limit (dropped for all reasons: %d)."
        self.assertEqual(self.lines, [(WARNING, line % (what, n)) for what, n in expected])
        self.lines.clear()

    def test_a_publish_is_logged_once_a_minute(self):
        for versions in (3, 5):
            self.start(versions=versions, message_size_limit=20)
            for qos in (0, 1, 2):
                self.client.send(publish("t", bytes(21), qos, qos))
            self.seconds(1)
            self.assertEqual(self.broker.stats[4], 3)
            self.assertEqual(self.broker.messages.refused, 0)
            self.check_denied(("PUBLISH from 'c' to 't'", 1))
            self.client.send(publish("t", bytes(21)) + publish("t", bytes(20)))
            self.seconds(MINUTE)
            self.check_denied()
            self.client.send(publish("t", bytes(21)))
            self.seconds(1)
            self.check_denied(("PUBLISH from 'c' to 't'", 5))

    def test_a_publish_of_version_5(self):
        self.start(message_size_limit=20)
        self.client.leave()
        self.seconds(1)
        self.world.come(packets5.connect("d") + packets5.publish("t", bytes(21)), 0)
        self.seconds(1)
        self.assertEqual(self.broker.stats[4], 1)
        self.check_denied(("PUBLISH from 'd' to 't'", 1))

    def test_a_will_over_the_limit(self):
        self.start(message_size_limit=20)
        self.client.leave()
        wills = (("w", "x" * 21, 0), ("w", "x" * 21, 0, b""))
        for n in (0, 1):
            self.lines.clear()
            self.seconds(MINUTE + SOON)
            client = self.world.come((connect, packets5.connect)[n]("w", will=wills[n]), 0)
            self.seconds(SOON)
            self.check_denied(("the will from 'w' to 'w'", n + 1))
            client.leave()
            self.seconds(1)
