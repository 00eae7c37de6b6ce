"""Limits that contradict each other are refused by name; all others start a broker."""

import random
import unittest

import scratch
from fakes import World
from packets import publish, subscribe

from slotmq import Broker, Limits, Settings
from slotmq.config import mosquitto_conf
from slotmq.config.capacities import fields
from slotmq.config.settings import ConfError

SERVED = 60  # brokers
READ = 400  # configurations that are only read
AFFORDABLE = 300000  # bytes of tables
BLOCKS = 65535  # that a store can have: 0xFFFF is none


def choice(values):
    return values[random.getrandbits(16) % len(values)]


def random_limits(bound):
    """A few limits, near their bounds rather than between them."""
    rows = fields()
    found = {}
    for _ in range(1 + random.getrandbits(2)):
        name, default, least, most = choice(rows)
        most = min(most, bound)
        near = [least, least + 1, default, default * 2, most // 2, most - 1, most]
        near.append(least + random.getrandbits(16) % (most - least + 1))
        value = choice(near)
        found[name] = min(max(value, least), most)
    return found


class Case(unittest.TestCase):
    def load(self, values, base):
        """The limits; None if they contradict one another: then the error names one of them."""
        path = scratch.write("".join([f"limit {name} {values[name]}\n" for name in values]))
        try:
            return mosquitto_conf.load(path, base)[1]
        except ConfError as error:
            text = str(error)
            where, _, expected = text.partition(": limit: expected ")
            self.assertTrue(expected, text)
            name = list(values)[int(where.split(":")[-1]) - 1]
            self.assertIn(name, expected)
            return None


class TestRelations(Case):
    def test_limits_that_contradict_are_refused_by_name(self):
        base = Limits()
        for seed in range(READ):
            random.seed(seed)
            with self.subTest(seed=seed):
                limits = self.load(random_limits(1 << 26), base)
                if limits:
                    self.check_stores(limits)

    def check_stores(self, limits):
        ids = (limits.client_id_bytes + 15) // 16 * limits.sessions
        self.assertLessEqual(ids, BLOCKS)
        self.assertLessEqual(limits.shares * 2, BLOCKS)
        self.assertLessEqual(max(limits.name_bytes, limits.retained_name_bytes) // 16, BLOCKS)
        self.assertLessEqual(limits.message_bytes // limits.message_block, BLOCKS)
        whole = limits.message_bytes // limits.message_block * limits.message_block
        self.assertGreaterEqual(whole, limits.max_packet)

    def test_accepted_limits_start_a_broker_that_serves(self):
        """The longest message goes from one client to another, QoS 1 and 2, each version."""
        base = Limits(connections=3, sessions=4)
        seed = served = 0
        while served < SERVED:
            seed += 1
            random.seed(seed)
            with self.subTest(seed=seed):
                limits = self.load(random_limits(20000), base)
                if limits and limits.connections > 1 and limits.ram_bytes() < AFFORDABLE:
                    self.serve(limits, 3 if seed & 1 else 5)
                    served += 1

    def serve(self, limits, version):
        settings = Settings(sys_interval=0, mqtt_versions=version)
        try:
            settings.check(limits)
        except ValueError as error:
            self.assertIn("route_entries: at least subscriptions (", str(error))
            return
        world = World(Broker(limits, settings))
        one, other = world.client("a"), world.client("b")
        other.send(subscribe(1, "t", 2))
        world.turn(2)
        self.assertEqual(other.packets(), [b"\x90\3\0\1\2"])
        text = b"x" * (limits.max_packet - 12)
        for qos in (1, 2):
            one.send(publish("t", text, qos, 7))
            for _ in range(60 + limits.max_packet // 16):
                one.answer()
                other.answer()
                world.turn()
                if len(other.messages) == qos:
                    break
            self.assertEqual(len(other.messages), qos)
            self.assertEqual(other.messages[-1][1], text)


class TestSingleLimits(Case):
    def test_a_small_message_block_with_many_bytes_is_refused(self):
        many = {"sessions": 2048, "route_entries": 2048, "topic_bytes": 1024, "aliases": 16}
        big = Limits(connections=512, message_block=512, **many)
        for values in ({"message_block": 64}, {"message_block": 16}):
            self.assertIsNone(self.load(values, big))

    def test_message_bytes_below_one_block_or_packet_are_refused(self):
        small = {"message_bytes": 256, "max_packet": 128, "topic_bytes": 32}
        values = dict(small)
        values["message_block"] = 4096
        self.assertIsNone(self.load(values, Limits()))
        self.assertIsNone(self.load({"message_bytes": 256}, Limits(message_block=512)))
        self.assertIsNotNone(self.load(small, Limits()))
