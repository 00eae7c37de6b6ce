"""The log: what is written, where it goes, and that no destination can stop it."""

import sys
import unittest

import scratch

from slotmq.log import Log
from slotmq.settings import Settings

ERROR, WARNING, DEBUG = 1, 2, 64


def lines(path):
    with open(path) as file:  # noqa: PTH123
        return file.read().split("\n")[:-1]


class Broken:
    """A destination whose disk is full, or whose reader has gone."""

    def __init__(self, error):
        self.error = error

    def write(self, text):
        raise self.error


class TestLog(unittest.TestCase):
    def setUp(self):
        self.path = scratch.path()
        self.settings = Settings(log_dest=(f"file {self.path}",))
        self.log = Log()

    def tearDown(self):
        self.log.close()

    def test_before_it_is_opened_it_is_silent(self):
        self.assertEqual(self.log.mask, 0)
        self.log.write(ERROR, "one")

    def test_a_line_has_the_time(self):
        self.log.open(self.settings, ERROR)
        self.log.write(ERROR, "one: two")
        time, _, text = lines(self.path)[0].partition(": ")
        self.assertEqual(text, "one: two")
        self.assertGreater(int(time), 1700000000)

    def test_without_a_set_clock_the_time_is_since_the_start(self):
        self.log.epoch = -self.log.start
        self.assertLessEqual(self.log.now(), 5)

    def test_only_types_of_the_mask_are_written(self):
        self.log.open(self.settings, ERROR | DEBUG)
        for bit in (ERROR, WARNING, DEBUG):
            self.log.write(bit, str(bit))
        self.assertEqual([line.split()[-1] for line in lines(self.path)], ["1", "64"])

    def test_a_line_is_there_at_once(self):
        self.log.open(self.settings, ERROR)
        self.log.write(ERROR, "one")
        self.assertEqual(len(lines(self.path)), 1)

    def test_opened_anew_it_follows_the_settings(self):
        self.log.open(self.settings, ERROR)
        self.log.write(ERROR, "one")
        other = scratch.path()
        self.log.open(Settings(log_dest=(f"file {other}", f"file {self.path}")), DEBUG)
        self.log.write(ERROR, "two")
        self.log.write(DEBUG, "three")
        self.assertEqual(len(lines(self.path)), 2)
        self.assertEqual(len(lines(other)), 1)

    def test_the_terminals_are_destinations_and_stay_open(self):
        self.log.open(Settings(log_dest=("stdout", "stderr")), ERROR)
        self.assertEqual(self.log.outs, [sys.stdout, sys.stderr])
        self.log.close()
        sys.stderr.write("")

    def test_a_destination_that_fails_costs_only_itself(self):
        self.log.open(self.settings, ERROR)
        self.log.outs = [Broken(OSError(28)), Broken(ValueError()), self.log.outs[0]]
        self.log.write(ERROR, "one")
        self.log.outs = self.log.outs[2:]
        self.assertEqual(len(lines(self.path)), 1)
