"""What the program publishes to a topic that is known takes the fast path: clients see no
difference to the first message, which took the handlers."""

from array import array

import packets
import packets5
from embed_case import EmbedCase

from slotmq import Broker
from slotmq.platform import ondemand

_SIZES = 0, 1, 119, 120, 121, 122, 123, 124, 300, 1500


class Own(Broker):
    """A program's class around Broker."""

    def __init__(self, *args):
        super().__init__(*args)
        self.calls = []

    def turn(self, *args):
        self.calls.append("turn")
        return super().turn(*args)

    def publish(self, *args):
        self.calls.append("publish")
        return super().publish(*args)


class TestOwnMessages(EmbedCase):
    def setUp(self):
        self.start(mqtt_versions=5)
        self.three = self.subscriber("three", "a/+", 1)
        self.five = self.world.come(packets5.connect("five"), 2)
        self.five.send(packets5.subscribe(1, "+/b", 1))
        self.world.turn(2)
        self.five.packets()
        self.forwarded = []
        # (Not by an import: another test may have unloaded what that found.)
        self.module = ondemand.take("embed.own_messages", 0)
        self.inner_forward = self.module.forward
        self.module.forward = self.forward

    def tearDown(self):
        self.module.forward = self.inner_forward
        super().tearDown()

    def forward(self, broker, topic, payload, qos):
        done = self.inner_forward(broker, topic, payload, qos)
        self.forwarded.append(bool(done))
        return done

    def take(self, client):
        """The whole packets that have come, without the packet ids, with acknowledgements."""
        found = []
        for data in client.packets():
            qos = data[0] & 6
            if client is self.five:
                flags, topic, packet_id, properties, payload = packets5.read_publish(data)
                found.append((flags, topic, properties, payload, len(data)))
            else:
                topic, payload, _, packet_id = packets.read_publish(data)
                found.append((data[0], topic, payload, len(data)))
            if qos:
                client.send(bytes((0x40, 2, packet_id >> 8, packet_id & 255)))
        self.world.turn(2)
        return found

    def test_each_version_gets_the_packet_that_the_handlers_send(self):
        for topic in ("a/x", "x/b", "a/b"):
            for size in _SIZES:
                for qos in (0, 1):
                    self.broker.subscriptions.forget_routes()
                    seen = []
                    for _ in range(2):
                        self.assertTrue(self.broker.publish(topic, b"p" * size, qos))
                        self.world.turn()
                        seen.append((self.take(self.three), self.take(self.five)))
                    self.assertEqual(seen[0], seen[1])
                    self.assertTrue(seen[0][0] or seen[0][1])
        self.assertIn(True, self.forwarded)
        self.assertEqual(self.forwarded[::4], [False] * len(self.forwarded[::4]))

    def test_a_receiver_without_space_costs_the_others_nothing(self):
        for _ in range(2):
            self.broker.publish("a/b", b"first")
        self.world.turn()
        self.take(self.three), self.take(self.five)
        self.three.stream.write_some = lambda n: None
        for n in range(40):
            self.broker.publish("a/b", b"%d" % n * 200)
        self.world.turn(2)
        self.assertEqual(len(self.take(self.five)), 40)
        self.assertIn(False, self.forwarded[2:])  # the handlers dropped it for the other

    def test_what_no_client_may_publish_is_an_error_where_it_is_known_too(self):
        self.broker.publish("a/b", b"x")
        for topic, payload, qos in (("a/+", b"", 0), ("", b"a/b", 0), ("a/b", b"", 3)):
            self.assertRaises(ValueError, self.broker.publish, topic, payload, qos)
        self.broker.settings.message_size_limit = 10
        self.broker.apply_settings()
        self.broker.publish("a/b", b"0123456789")
        self.assertRaises(ValueError, self.broker.publish, "a/b", b"0123456789a")

    def test_texts_and_buffers_are_as_good_as_bytes(self):
        self.broker.publish("a/b", b"x")
        for topic in ("a/b", b"a/b", bytearray(b"a/b"), memoryview(b"a/b")):
            for payload in ("text", b"text", bytearray(b"text"), memoryview(b"text")):
                self.broker.publish(topic, payload)
        self.world.turn()
        found = self.take(self.three)
        self.assertEqual(len(found), 17)
        self.assertEqual(len(set(found[1:])), 1)

    def test_a_hook_that_is_asked_about_clients_is_not_in_the_way(self):
        class Hooks:
            def may_publish(self, client_id, topic):
                return False

        self.broker.hooks = Hooks()
        self.broker.publish("a/b", b"1")
        self.broker.publish("a/b", b"2")
        self.world.turn()
        self.assertEqual(len(self.take(self.three)), 2)
        self.assertEqual(self.forwarded, [False, True])

    def test_settings_that_need_the_handlers_have_them(self):
        self.broker.publish("a/b", b"1")
        self.broker.settings.upgrade_outgoing_qos = True
        self.broker.apply_settings()
        self.broker.publish("a/b", b"2")
        self.assertEqual(self.forwarded, [False])
        self.world.turn()
        self.assertEqual([each[0] for each in self.take(self.three)], [0x30, 0x32])

    def test_what_the_program_puts_around_publish_is_called_each_time(self):
        inner, seen = self.broker.publish, []

        def around(*args):
            seen.append(args)
            return inner(*args)

        self.broker.publish = around
        for _ in range(3):
            self.assertTrue(self.broker.publish("a/x", b"x"))
        self.assertEqual(seen, [("a/x", b"x")] * 3)

    def test_a_class_of_the_program_keeps_its_methods(self):
        broker = Own(self.broker.limits)
        for _ in range(3):
            broker.turn(0)
            broker.publish("a/x", b"x")
        self.assertEqual(broker.calls, ["turn", "publish"] * 3)

    def test_a_payload_of_larger_items_has_all_its_bytes(self):
        payload = memoryview(array("H", (1, 2, 3)))
        for _ in range(2):
            self.broker.publish("a/x", payload)
            self.world.turn()
            ((_, _, came, _),) = self.take(self.three)
            self.assertEqual(came, b"\1\0\2\0\3\0")
