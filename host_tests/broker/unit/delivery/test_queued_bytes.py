"""`max_queued_bytes`: no more waits for a client once so many bytes do.

`max_inflight_bytes`: nothing more is sent to it once so many bytes are in flight."""

import unittest

import packets5
from broker_case import BrokerCase
from packets import connect, publish, subscribe

LIMITS = {"inflight": 4, "queued": 20, "deliveries": 60}


class Case(BrokerCase):
    LIMITS = LIMITS

    def reader(self, name="reader", qos=1):
        client = self.world.client(name, clean=False)
        client.send(subscribe(1, "t", qos))
        self.world.turn(2)
        client.packets()
        return client

    def publish(self, *sizes, qos=1):
        """Publish payloads of these sizes; each is acknowledged, whoever gets it."""
        writer = self.world.client("writer")
        for k in range(len(sizes)):
            writer.send(publish("t", bytes((65 + k,)) * sizes[k], qos, 1 + k))
            self.world.turn(2)
            self.assertEqual(len(writer.packets()), 1 if qos else 0)
        writer.leave()
        self.world.turn(2)

    def got(self, name="reader"):
        """The sizes of the messages that a reader gets when it comes back."""
        client = self.world.come(connect(name, clean=False), 2)
        for _ in range(30):
            client.answer()
            self.world.turn()
        return [len(payload) for _, payload, _ in client.messages]


class TestQueuedBytes(Case):
    def leave(self, client):
        client.leave()
        self.world.turn(2)

    def test_without_it_the_number_counts(self):
        self.leave(self.reader())
        self.publish(*[200] * 10)
        self.assertEqual(self.got(), [200] * 10)

    def test_a_message_may_begin_below_it_and_end_above(self):
        for most, expected in ((199, 1), (200, 1), (201, 2), (400, 2), (401, 3)):
            self.start(max_queued_bytes=most)
            self.leave(self.reader())
            self.publish(*[200] * 5)
            self.assertEqual(self.broker.deliveries.refused, 5 - expected)
            self.assertEqual(self.got(), [200] * expected)

    def test_one_large_message_is_never_too_large(self):
        self.start(max_queued_bytes=10)
        self.leave(self.reader())
        self.publish(500, 1)
        self.assertEqual(self.got(), [500])

    def test_a_message_without_payload_takes_none(self):
        self.start(max_queued_bytes=10)
        self.leave(self.reader())
        self.publish(0, 0, 10, 0)
        self.assertEqual(self.got(), [0, 0, 10])

    def test_the_oldest_go_if_that_is_the_policy(self):
        self.start(max_queued_bytes=500, when_full={"deliveries": "drop_oldest"})
        self.leave(self.reader())
        self.publish(100, 200, 300, 150, 90)
        self.assertEqual(self.got(), [300, 150, 90])

    def test_each_session_has_its_own(self):
        self.start(max_queued_bytes=300)
        self.leave(self.reader("one"))
        self.publish(200)
        self.leave(self.reader("two"))
        self.publish(200, 200)
        self.assertEqual(self.got("one"), [200, 200])
        self.assertEqual(self.got("two"), [200, 200])

    def test_what_the_window_takes_does_not_wait(self):
        self.start(max_queued_bytes=250)
        reader = self.reader()
        self.publish(*[200] * 10)
        for _ in range(30):
            self.world.turn()
        self.assertEqual(len(reader.packets()), LIMITS["inflight"])
        for _ in range(30):
            reader.answer()
            self.world.turn()
        self.assertEqual(self.broker.deliveries.refused, 10 - LIMITS["inflight"] - 2)

    def test_many_in_one_turn_fill_the_window_first(self):
        self.start(max_queued_bytes=250)
        reader = self.reader()
        writer = self.world.client("writer")
        writer.send(b"".join([publish("t", 200 * b"x", 1, 1 + k) for k in range(10)]))
        for _ in range(30):
            self.world.turn()
            reader.answer()
        self.assertGreaterEqual(len(reader.messages), LIMITS["inflight"] + 2)

    def test_qos_2_and_version_5(self):
        self.start(max_queued_bytes=401)
        client = self.world.come(packets5.connect("five", clean=False, expiry=1000), 2)
        client.send(packets5.subscribe(1, "t", 2))
        self.world.turn(2)
        self.leave(client)
        self.leave(self.reader("reader", 2))
        self.publish(*[200] * 5, qos=2)
        self.assertEqual(self.broker.deliveries.refused, 2 * 2)
        self.assertEqual(self.got(), [200] * 3)

    def test_queued_qos_0_counts(self):
        self.start(max_queued_bytes=250, queue_qos0_messages=True)
        self.leave(self.reader())
        self.publish(*[200] * 5, qos=0)
        self.assertEqual(self.got(), [200, 200])

    def test_it_changes_while_running(self):
        self.leave(self.reader())
        self.broker.settings.max_queued_bytes = 201
        self.broker.apply_settings()
        self.publish(200, 200, 200)
        self.broker.settings.max_queued_bytes = 0
        self.broker.apply_settings()
        self.publish(200)
        self.assertEqual(self.got(), [200, 200, 200])


if __name__ == "__main__":
    unittest.main()


class TestInflightBytes(Case):
    LIMITS = {"inflight": 10, "queued": 20, "deliveries": 60}  # noqa: RUF012 - MicroPython has no typing

    def batch(self, client):
        """The sizes of the messages that come before the client acknowledges any."""
        for _ in range(10):
            self.world.turn()
        before = len(client.messages)
        client.answer()
        return [len(payload) for _, payload, _ in client.messages[before:]]

    def test_a_message_may_begin_below_it_and_end_above(self):
        for most, expected in ((199, 1), (200, 1), (201, 2), (400, 2), (401, 3)):
            self.start(max_inflight_bytes=most)
            reader = self.reader()
            self.publish(*[200] * 6)
            self.assertEqual(self.batch(reader), [200] * expected)
            self.assertEqual(self.batch(reader), [200] * min(expected, 6 - expected))

    def test_without_it_and_with_much_the_number_counts(self):
        for most in (0, 100000):
            self.start(max_inflight_bytes=most)
            reader = self.reader()
            self.publish(*[200] * 12)
            self.assertEqual(self.batch(reader), [200] * 10)

    def test_small_ones_wait_behind_a_large_one(self):
        self.start(max_inflight_bytes=300)
        reader = self.reader()
        self.publish(100, 500, 1, 1)
        self.assertEqual(self.batch(reader), [100, 500])
        self.assertEqual(self.batch(reader), [1, 1])

    def test_a_message_ends_with_pubrec(self):
        self.start(max_inflight_bytes=200)
        reader = self.reader(qos=2)
        self.publish(200, 200, qos=2)
        self.assertEqual(self.batch(reader), [200])
        self.assertEqual(self.batch(reader), [200])

    def test_qos_0_is_never_in_flight(self):
        self.start(max_inflight_bytes=200, queue_qos0_messages=True)
        reader = self.reader()
        reader.leave()
        self.world.turn(2)
        self.publish(200, 200, qos=0)
        self.publish(100, 200)
        reader = self.world.come(connect("reader", clean=False), 2)
        self.assertEqual(self.batch(reader), [200, 200, 100, 200])

    def test_version_5(self):
        self.start(max_inflight_bytes=300)
        client = self.world.come(packets5.connect("five", properties=b"\x21\0\x05"), 2)
        client.send(packets5.subscribe(1, "t", 1))
        self.world.turn(2)
        client.packets()
        self.publish(*[200] * 4)
        self.world.turn(4)
        sent = client.packets()
        self.assertEqual(len(sent), 2)
        client.send(b"".join([b"\x40\x02" + data[6:8] for data in sent]))
        self.world.turn(4)
        self.assertEqual(len(client.packets()), 2)

    def test_what_was_sent_before_a_reconnect_is_sent_again(self):
        reader = self.reader()
        self.publish(*[200] * 4)
        for _ in range(10):
            self.world.turn()
        self.broker.settings.max_inflight_bytes = 201
        self.broker.apply_settings()
        reader.leave()
        self.world.turn(2)
        reader = self.world.come(connect("reader", clean=False), 2)
        self.assertEqual(self.batch(reader), [200] * 4)
