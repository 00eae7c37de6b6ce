"""Settings of one listener: max_qos, topic aliases, the versions of MQTT that it accepts."""

import unittest

import packets5
from fakes import Listener, World
from packets import connect, publish, subscribe

from slotmq import Broker, Limits, Settings

ACCEPTED = b"\x20\x02\0\0"
BAD_LEVEL = b"\x20\x02\0\1"


class Case(unittest.TestCase):
    def listener(self, settings=None, **options):
        """A listener with options, beside one without any."""
        self.options = options
        settings = settings or Settings(sys_interval=0)
        settings.listeners.append((None, 1884, 0, options))
        limits = Limits(connections=6, aliases=8, route_entries=48)
        self.world = World(Broker(limits, settings))
        self.listeners = Listener()
        self.world.loop.listeners.add(self.listeners, self.listeners.accept, 0, options)

    def here(self, first):
        """A client of the listener with options."""
        return self.world.come(first, listener=self.listeners)

    def there(self, first):
        """A client of the other listener."""
        return self.world.come(first)

    def answers(self, client, packet):
        client.packets()
        client.send(packet)
        self.world.turn(3)
        return client.packets()


class TestMaxQos(Case):
    def test_a_filter_is_granted_no_more_on_this_listener_only(self):
        self.listener(max_qos=1)
        for come, granted in ((self.here, 1), (self.there, 2)):
            client = come(connect("client"))
            answer = self.answers(client, subscribe(1, "a", 2))
            self.assertEqual(answer, [b"\x90\x03\0\1" + bytes((granted,))])
            five = come(packets5.connect("five"))
            answer = self.answers(five, packets5.subscribe(1, "a", 2))
            self.assertEqual(answer, [b"\x90\x04\0\1\0" + bytes((granted,))])

    def test_a_publish_above_it_ends_the_connection(self):
        self.listener(max_qos=1)
        client = self.here(connect("client"))
        self.assertEqual(self.answers(client, publish("a", b"", 1, 7)), [b"\x40\x02\0\7"])
        self.assertEqual(self.answers(client, publish("a", b"", 2, 8)), [])
        self.assertTrue(client.stream.closed)
        five = self.here(packets5.connect("five"))
        answer = self.answers(five, packets5.publish("a", b"", 2, 8))
        self.assertEqual(answer[0][0], 0xE0)
        self.assertEqual(answer[0][2], 0x9B)  # QoS not supported [MQTT-3.2.2-11]

    def test_a_publish_above_it_passes_on_another_listener(self):
        self.listener(max_qos=0)
        client = self.there(connect("client"))
        self.assertEqual(self.answers(client, publish("a", b"", 2, 7)), [b"\x50\x02\0\7"])

    def test_it_may_be_higher_than_that_of_the_others(self):
        self.listener(Settings(sys_interval=0, max_qos=0), max_qos=2)
        client = self.here(connect("client"))
        self.assertEqual(self.answers(client, publish("a", b"", 2, 7)), [b"\x50\x02\0\7"])
        client = self.there(connect("other"))
        self.assertEqual(self.answers(client, publish("a", b"", 1, 7)), [])
        self.assertTrue(client.stream.closed)

    def test_connack_of_version_5_tells_it(self):
        """[MQTT-3.2.2-9]"""
        self.listener(max_qos=1)
        (here,) = self.here(packets5.connect("here")).packets()
        (there,) = self.there(packets5.connect("there")).packets()
        self.assertIn(b"\x24\1", here)
        self.assertFalse(b"\x24" in there)

    def test_a_reload_changes_it_for_those_who_are_connected(self):
        self.listener(max_qos=1)
        client = self.here(connect("client"))
        self.options["max_qos"] = 2
        self.world.broker.apply_settings()
        self.assertEqual(self.answers(client, publish("a", b"", 2, 7)), [b"\x50\x02\0\7"])

    def test_a_will_above_it_is_refused(self):
        self.listener(max_qos=1)
        for come, accepted in ((self.here, False), (self.there, True)):
            client = come(connect("client", will=("gone", b"", 2)))
            self.assertEqual(client.packets() == [ACCEPTED], accepted)
            (answer,) = come(packets5.connect("five", will=("gone", b"", 2, b""))).packets()
            self.assertEqual(answer[3] == 0, accepted)


class TestTopicAliases(Case):
    def test_connack_tells_how_many_this_listener_takes(self):
        self.listener(max_topic_alias=3)
        (here,) = self.here(packets5.connect("here")).packets()
        (there,) = self.there(packets5.connect("there")).packets()
        self.assertIn(b"\x22\0\3", here)
        self.assertIn(b"\x22\0\x08", there)

    def test_none(self):
        self.listener(max_topic_alias=0)
        client = self.here(packets5.connect("here"))
        self.assertFalse(b"\x22" in client.packets()[0])
        answer = self.answers(client, packets5.publish("a", b"", 0, 0, b"\x23\0\1"))
        self.assertEqual(answer[0][2], 0x94)  # topic alias invalid [MQTT-3.3.2-9]

    def test_no_more_than_the_limit(self):
        self.listener(max_topic_alias=100)
        self.assertIn(b"\x22\0\x08", self.here(packets5.connect("here")).packets()[0])

    def test_the_brokers_own(self):
        self.listener(max_topic_alias_broker=0)
        topic = "a/long/topic/that/is/worth/an/alias"
        for come, found in ((self.here, False), (self.there, True)):
            client = come(packets5.connect("client", b"\x22\0\5"))
            self.answers(client, packets5.subscribe(1, "#", 0))
            (answer,) = self.answers(client, packets5.publish(topic, b""))
            self.assertEqual(b"\x23\0\1" in packets5.read_publish(answer)[3], found)


class TestVersions(Case):
    def test_another_one_is_refused(self):
        """[MQTT-3.1.2-2]"""
        self.listener(accept_protocol_versions=1 << 4)
        self.assertEqual(self.here(connect("four")).packets(), [ACCEPTED])
        self.assertEqual(self.here(connect("three", level=3)).packets(), [BAD_LEVEL])
        self.assertEqual(self.here(packets5.connect("five")).packets(), [BAD_LEVEL])
        self.assertEqual(self.there(connect("three", level=3)).packets(), [ACCEPTED])

    def test_several(self):
        self.listener(accept_protocol_versions=1 << 3 | 1 << 5)
        self.assertEqual(self.here(connect("three", level=3)).packets(), [ACCEPTED])
        self.assertEqual(self.here(packets5.connect("five")).packets()[0][3], 0)
        self.assertEqual(self.here(connect("four")).packets(), [BAD_LEVEL])
