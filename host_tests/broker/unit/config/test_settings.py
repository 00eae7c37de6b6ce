"""Settings: the defaults, and the errors that a library user gets."""

import unittest

from slotmq.config.limits import Limits
from slotmq.config.policies import WHEN_FULL, rows, sized
from slotmq.config.settings import Settings


class TestSettings(unittest.TestCase):
    def test_defaults_are_mosquittos_or_the_tables(self):
        settings = Settings()
        self.assertTrue(settings.allow_anonymous)
        self.assertEqual(settings.max_keepalive, 65535)
        self.assertEqual(settings.sys_interval, 10)
        self.assertEqual(settings.listeners, [])
        for name, _ in sized():
            self.assertEqual(getattr(settings, name), 0)

    def test_arguments_replace_defaults_of_one_instance(self):
        self.assertEqual(Settings(max_qos=1).max_qos, 1)
        self.assertEqual(Settings().max_qos, 2)

    def test_an_unknown_argument_is_refused(self):
        with self.assertRaises(TypeError) as caught:
            Settings(max_qoss=1)
        self.assertIn("max_qoss", str(caught.exception))

    def test_listeners_and_policies_belong_to_one_instance(self):
        first = Settings()
        first.listeners.append(("127.0.0.1", 1883, 0))
        first.when_full["sessions"] = "refuse"
        self.assertEqual(Settings().listeners, [])
        self.assertEqual(Settings().when_full["sessions"], "drop_empty")

    def test_policies_replace_only_what_they_name(self):
        settings = Settings(when_full={"messages": "disconnect"})
        self.assertEqual(settings.when_full["messages"], "disconnect")
        self.assertEqual(settings.when_full["retained"], "refuse")
        self.assertEqual(len(settings.when_full), len(rows(WHEN_FULL)))


class TestCheck(unittest.TestCase):
    def test_what_the_tables_hold_is_allowed(self):
        limits = Limits()
        Settings().check(limits)
        Settings(max_inflight_messages=limits.inflight).check(limits)

    def test_more_is_refused_with_the_limits_name(self):
        limits = Limits()
        for name, limit in sized():
            with self.subTest(name=name):
                settings = Settings(**{name: getattr(limits, limit) + 1})
                with self.assertRaises(ValueError) as caught:
                    settings.check(limits)
                self.assertIn(name, str(caught.exception))
                self.assertIn(limit, str(caught.exception))

    def test_a_prefix_that_leaves_no_room_for_its_digits_is_refused(self):
        with self.assertRaises(ValueError) as caught:
            Settings(auto_id_prefix=b"x" * 16).check(Limits())
        self.assertIn("auto_id_prefix", str(caught.exception))

    def test_a_policy_the_table_has_not_is_refused(self):
        with self.assertRaises(ValueError) as caught:
            Settings(when_full={"reassembly": "drop_oldest"}).check(Limits())
        self.assertIn("reassembly", str(caught.exception))

    def test_a_connack_that_is_too_long_is_refused_with_what_makes_it_so(self):
        half = 320
        for key, others in (
            ("response_information", {"password_file": "users"}),
            ("response_information", {}),
            ("server_reference", {}),
        ):
            limits = Limits(tx_bytes=2 * half)
            with self.subTest(key=key):
                longest = self.longest(limits, key, **others)
                self.assertTrue(half - 80 - 65 < longest < half, longest)
                Settings(mqtt_versions=3, **{key: "x" * 1000}).check(limits)

    def longest(self, limits, key, **others):
        """The longest text that is taken."""
        for n in range(1, 1000):
            try:
                Settings(**{key: "x" * n}, **others).check(limits)
            except ValueError as error:
                self.assertIn(f"{key}: a CONNACK of at most 320 bytes", str(error))
                break
        return n - 1

    def test_short_ones_are_too_long_for_the_smallest_buffer(self):
        limits = Limits(tx_bytes=64)
        Settings().check(limits)
        for key, value in (("auto_id_prefix", b"prefix"), ("password_file", "users")):
            with self.assertRaises(ValueError) as caught:
                Settings(**{key: value}).check(limits)
            self.assertIn(key, str(caught.exception))
