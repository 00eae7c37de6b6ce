# test_ondemand.py - modules that are loaded when they are called, where the heap is small.
import sys
import unittest

from slotmq import ondemand


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
        ondemand.take("budget", 0)
        loaded = self.load(1)
        self.assertTrue(hasattr(ondemand.take("policies", 0), "check"))
        self.assertEqual(loaded, ["slotmq.policies"] * 2)
        self.assertFalse("slotmq.budget" in sys.modules)
        self.assertTrue("slotmq.policies" in sys.modules)

    def test_not_if_there_is_none_even_so(self):
        self.load(2)
        with self.assertRaises(MemoryError):
            ondemand.take("policies", 0)
        self.assertFalse("slotmq.policies" in sys.modules)


if __name__ == "__main__":
    unittest.main()
