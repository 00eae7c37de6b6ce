"""Modules that are loaded when they are called, on a board with a small heap."""

import sys
import unittest

from slotmq.platform import ondemand


class TestTake(unittest.TestCase):
    def setUp(self):
        ondemand.forget("config.policies")  # another test may have loaded it

    def tearDown(self):
        if "__import__" in ondemand.__dict__:
            del ondemand.__dict__["__import__"]
        ondemand.forget_all()

    def load(self, failures):
        """Replace the module's __import__ by one that raises MemoryError so many times."""
        loaded = []

        def stand_in(name):
            loaded.append(name)
            if len(loaded) <= failures:
                raise MemoryError
            return __import__(name)

        ondemand.__import__ = stand_in
        return loaded

    def test_after_a_memory_error_the_others_are_dropped_and_it_is_loaded_again(self):
        ondemand.take("config.budget", 0)
        loaded = self.load(1)
        self.assertTrue(hasattr(ondemand.take("config.policies", 0), "check"))
        self.assertEqual(loaded, ["slotmq.config.policies"] * 2)
        self.assertFalse("slotmq.config.budget" in sys.modules)
        self.assertTrue("slotmq.config.policies" in sys.modules)

    def test_a_second_memory_error_is_raised(self):
        self.load(2)
        with self.assertRaises(MemoryError):
            ondemand.take("config.policies", 0)
        self.assertFalse("slotmq.config.policies" in sys.modules)
