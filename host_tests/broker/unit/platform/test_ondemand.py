# test_ondemand.py - modules that are loaded when they are called, where the heap is small.
import sys
import unittest

from slotmq.platform import ondemand


class TestTake(unittest.TestCase):
    def tearDown(self):
        if "__import__" in ondemand.__dict__:
            del ondemand.__dict__["__import__"]
        ondemand.forget_all()

    def load(self, failures):
        """__import__ for the module under test, which finds no heap so many times."""
        loaded = []

        def stand_in(name):
            loaded.append(name)
            if len(loaded) <= failures:
                raise MemoryError
            return __import__(name)

        ondemand.__import__ = stand_in
        return loaded

    def test_one_for_which_there_is_no_heap_takes_the_place_of_the_others(self):
        ondemand.take("config.budget", 0)
        loaded = self.load(1)
        self.assertTrue(hasattr(ondemand.take("config.policies", 0), "check"))
        self.assertEqual(loaded, ["slotmq.config.policies"] * 2)
        self.assertFalse("slotmq.config.budget" in sys.modules)
        self.assertTrue("slotmq.config.policies" in sys.modules)

    def test_not_if_there_is_none_even_so(self):
        self.load(2)
        with self.assertRaises(MemoryError):
            ondemand.take("config.policies", 0)
        self.assertFalse("slotmq.config.policies" in sys.modules)
