"""`log_dest topic`: lines of the log are messages below $SYS/broker/log/."""

import unittest

import packets5
from broker_case import BrokerCase
from fakes import Stream
from packets import PINGREQ, connect, publish, read_publish, subscribe

from slotmq.app import log_dests
from slotmq.platform import log

ERROR, WARNING, NOTICE, INFORMATION, SUBSCRIBE, UNSUBSCRIBE, DEBUG = (1 << k for k in range(7))
EACH = 127
BUFFER = 16 * 1024  # on a computer


class Case(BrokerCase):
    def start(self, limits=None, **settings):
        super().start(limits, **settings)
        log_dests.open_all(("topic",), EACH, self.broker)
        self.topics = self.broker.loop.log_topics
        self.broker.log = log.write
        self.broker.log_mask = NOTICE

    def tearDown(self):
        log_dests.close()
        super().tearDown()

    def log(self, bit, text):
        log.write(bit, text)

    def reader(self, name="reader", topic_filter="$SYS/broker/log/#"):
        client = self.world.client(name)
        client.send(subscribe(1, topic_filter, 2))
        self.world.turn(2)
        client.packets()
        return client

    def lines(self, client):
        """(topic below log/, line without its time) of each message that came."""
        self.world.turn(2)
        found = []
        for data in client.packets():
            self.assertEqual(data[0], 0x30, "QoS 0, not retained")
            topic, payload, _, _ = read_publish(data)
            time, _, line = payload.partition(b": ")
            self.assertGreater(int(time), 0)
            found.append((topic.decode().replace("$SYS/broker/log/", ""), line.decode()))
        return found


class TestLogTopics(Case):
    def test_who_connects(self):
        reader = self.reader()
        self.world.client("other")
        ((topic, line),) = self.lines(reader)
        self.assertEqual(topic, "N")
        self.assertEqual(line.find("New client connected from 192.0.2.7:50123 as 'other'"), 0)

    def test_each_type_has_its_topic(self):
        reader = self.reader()
        for bit in (ERROR, WARNING, NOTICE, INFORMATION, SUBSCRIBE, UNSUBSCRIBE):
            self.log(bit, str(bit))
        expected = zip(("E", "W", "N", "I", "M/subscribe", "M/unsubscribe"), (1, 2, 4, 8, 16, 32))  # noqa: B905 - MicroPython
        self.assertEqual(self.lines(reader), [(topic, str(bit)) for topic, bit in expected])

    def test_debug_lines_and_what_was_printed_are_no_messages(self):
        reader = self.reader()
        self.log(DEBUG, "one")
        self.log(0, "two")
        self.assertEqual(self.lines(reader), [])

    def test_a_reader_of_version_5(self):
        reader = self.world.come(packets5.connect("five"), 2)
        reader.send(packets5.subscribe(1, "$SYS/broker/log/W", 0))
        self.world.turn(2)
        reader.packets()
        self.log(WARNING, "one")
        self.world.turn(2)
        (data,) = reader.packets()
        flags, topic, _, _, payload = packets5.read_publish(data)
        self.assertEqual((flags, topic), (0, "$SYS/broker/log/W"))
        self.assertTrue(payload.endswith(b": one"))

    def test_a_line_from_the_midst_of_a_packet_follows_its_answer(self):
        reader = self.reader("reader", "$SYS/#")
        self.broker.may_subscribe = lambda client_id, topic_filter, qos: False
        reader.send(subscribe(7, "a/b", 0))
        self.world.turn(2)
        suback, message = reader.packets()
        self.assertEqual(suback, b"\x90\x03\0\x07\x80")
        self.assertIn(b"Denied SUBSCRIBE from 'reader' to 'a/b'", message)

    def test_the_order_stays(self):
        reader = self.reader()
        for k in range(50):
            self.log(NOTICE, str(k))
        self.assertEqual([int(line) for _, line in self.lines(reader)], list(range(50)))


class TestBounds(Case):
    def test_nothing_waits_for_nobody(self):
        self.log(ERROR, "one")
        self.world.client("other").send(subscribe(1, "#", 0))
        self.world.turn(2)
        self.log(ERROR, "two")
        self.assertEqual((self.topics.used, self.topics.lost), (0, 0))
        reader = self.reader()
        self.assertEqual(self.lines(reader), [])

    def test_nothing_is_queued_for_a_reader_that_is_away(self):
        away = self.world.client("away", clean=False)
        away.send(subscribe(1, "$SYS/broker/log/#", 2))
        self.world.turn(2)
        away.leave()
        self.world.turn(3)
        self.log(ERROR, "one")
        self.world.turn(2)
        self.assertEqual(self.broker.deliveries.count[0], 0)
        self.assertEqual(self.broker.messages.count[0], 0)

    def test_a_line_that_these_messages_cause_is_none(self):
        reader = self.reader()
        stream = Stream()
        broken = self.world.client("broken", stream)
        broken.send(subscribe(1, "$SYS/broker/log/#", 0))
        self.lines(reader)

        def fail(n):
            raise OSError(104)

        stream.write_some = fail
        self.log(WARNING, "one")
        self.assertEqual(self.lines(reader), [("W", "one")])
        self.assertTrue(stream.closed)
        self.log(WARNING, "two")
        self.assertEqual(self.lines(reader), [("W", "two")])

    def test_more_lines_than_the_buffer_has_are_counted(self):
        reader = self.reader()
        n = BUFFER // 115  # 3 bytes, 12 of the time, 100 of the text
        for k in range(n + 5):
            self.log(NOTICE, f"{k:100}")
        found = self.lines(reader)
        self.assertEqual([int(line) for _, line in found[:-1]], list(range(n)))
        self.assertEqual(found[-1], ("W", "5 lines of the log were not sent."))
        self.log(NOTICE, "next")
        self.assertEqual(self.lines(reader), [("N", "next")])

    def test_a_long_line_is_cut(self):
        reader = self.reader()
        self.log(NOTICE, 600 * "x")
        self.assertEqual(self.lines(reader), [("N", 500 * "x")])

    def test_max_packet_size_holds_for_them(self):
        for size, expected in ((20, []), (100, [("N", 52 * "x")])):
            self.start(max_packet_size=size)
            reader = self.reader("r", "$SYS/#")
            self.log(NOTICE, 600 * "x")
            self.assertEqual(self.lines(reader), expected)

    def test_other_clients_go_on(self):
        reader = self.reader()
        other = self.world.client("other")
        other.send(subscribe(1, "a", 0) + publish("a", b"x") + PINGREQ)
        self.log(NOTICE, "one")
        self.world.turn(2)
        self.assertEqual(other.packets()[1:], [publish("a", b"x"), b"\xd0\0"])
        self.assertEqual(self.lines(reader)[-1], ("N", "one"))

    def test_a_taken_over_reader_is_told_once(self):
        self.reader("same")
        again = self.world.come(connect("same", clean=False), 4)
        self.log(NOTICE, "one")
        self.world.turn(2)
        again.packets()
        again.send(subscribe(1, "$SYS/broker/log/#", 0))
        self.world.turn(2)
        again.packets()
        self.log(NOTICE, "two")
        self.assertEqual(self.lines(again), [("N", "two")])


if __name__ == "__main__":
    unittest.main()
