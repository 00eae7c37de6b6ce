"""What is denied is logged once a minute for each client and topic or filter; so many of them at
most, and then how many lines are missing."""

from access_case import AccessCase
from packets import connect, packet, publish, subscribe, text

FURTHER = "Left out for up to a minute: further lines about what is denied."
MISSING = "Left out: %d lines about what was denied."
MOST = 64  # of them on a computer
RULES = "user alice\ntopic readwrite open\n"


class TestDeniedLines(AccessCase):
    rules = RULES

    def client(self, name):
        client = self.world.come(connect(name, username="alice"))
        client.packets()
        self.logged.clear()
        return client

    def seconds(self, n):
        self.world.turn(n * 10, ms=100)

    def test_each_client_and_topic_has_a_line_a_minute(self):
        first, second = self.client("c1"), self.client("c2")
        for minute in range(2):
            self.logged.clear()
            for _ in range(3):
                for client in (first, second):
                    client.send(publish("t1", b"") + publish("t2", b"") + publish("open", b""))
                    self.world.turn(3)
                self.seconds(5)
            pairs = [(who, topic) for who in ("c1", "c2") for topic in ("t1", "t2")]
            lines = [
                f"Denied a message from {w!r}, u'alice' to {t!r} by acl_file" for w, t in pairs
            ]
            self.assertEqual([line.split(" (so")[0] for line in self.logged], lines, minute)
            self.seconds(60)

    def test_filters_too(self):
        client = self.client("c")
        for _ in range(3):
            client.send(subscribe(1, "t1", 0) + subscribe(2, "t2", 0) + subscribe(3, "open", 0))
            self.seconds(1)
        self.assertEqual(len(self.logged), 2, self.logged)
        self.assertIn("Denied SUBSCRIBE from 'c' to 't1': ", self.logged[0])

    def test_a_subscribe_with_many_filters_has_a_bounded_number_of_lines(self):
        client = self.client("c")
        filters = b"".join([text(f"f/{n}") + b"\0" for n in range(150)])
        client.send(packet(0x82, b"\0\1" + filters))
        self.world.turn(20)
        self.assertEqual(len(client.packets()), 1)
        self.assertEqual(len(self.logged), MOST + 1)
        self.assertEqual(self.logged[-1], FURTHER)
        self.seconds(61)
        client.send(publish("t1", b""))
        self.world.turn(3)
        self.assertEqual(self.logged[MOST + 1], MISSING % (150 - MOST))
        self.assertEqual(len(self.logged), MOST + 3)

    def test_what_is_kept_of_them_is_bounded(self):
        client = self.client("c")
        for n in range(1000):
            client.send(publish(f"t/{n}", b""))
        self.world.turn(200)
        self.assertEqual(self.broker.acl.denied, 1000)
        self.assertEqual(len(self.logged), MOST + 1)
        self.assertEqual(len(self.broker.said["times"]), MOST)
