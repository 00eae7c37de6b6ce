"""The log: what is written, where it goes, and that a failing destination does not stop it."""

import sys
import unittest

import scratch

from slotmq.app import log_dests
from slotmq.platform import log

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
        self.file = f"file {self.path}"

    def tearDown(self):
        log_dests.close()

    def test_before_it_is_opened_it_is_silent(self):
        self.assertEqual(log.mask, 0)
        log.write(ERROR, "one")

    def test_a_line_has_the_time(self):
        log_dests.open_all([self.file], ERROR)
        log.write(ERROR, "one: two")
        time, _, text = lines(self.path)[0].partition(": ")
        self.assertEqual(text, "one: two")
        self.assertGreater(int(time), 1700000000)

    def test_without_a_set_clock_the_time_is_since_the_start(self):
        before, log._epoch = log._epoch, -log._start
        self.assertLessEqual(log.now(), 86400)
        log._epoch = before

    def test_only_types_of_the_mask_are_written(self):
        log_dests.open_all([self.file], ERROR | DEBUG)
        for bit in (ERROR, WARNING, DEBUG):
            log.write(bit, str(bit))
        self.assertEqual([line.split()[-1] for line in lines(self.path)], ["1", "64"])

    def test_what_was_printed_is_for_the_files_whatever_the_mask(self):
        log_dests.open_all(["stdout", self.file], 0)
        log.write(0, "a/b")
        self.assertEqual([line.split()[-1] for line in lines(self.path)], ["a/b"])

    def test_a_line_is_there_at_once(self):
        log_dests.open_all([self.file], ERROR)
        log.write(ERROR, "one")
        self.assertEqual(len(lines(self.path)), 1)

    def test_opened_anew_it_goes_on_in_the_same_file_or_in_others(self):
        log_dests.open_all([self.file], ERROR)
        log.write(ERROR, "one")
        other = scratch.path()
        log_dests.open_all([f"file {other}", self.file], DEBUG)
        log.write(ERROR, "two")
        log.write(DEBUG, "three")
        self.assertEqual(len(lines(self.path)), 2)
        self.assertEqual(len(lines(other)), 1)

    def test_the_terminals_are_destinations_and_stay_open(self):
        log_dests.open_all(["stdout", "stderr"], ERROR)
        self.assertEqual(log.outs, [sys.stdout, sys.stderr])
        log_dests.close()
        sys.stderr.write("")

    def test_a_destination_that_fails_costs_only_itself(self):
        log_dests.open_all([self.file], ERROR)
        log.outs.insert(0, Broken(OSError(28)))
        log.outs.insert(0, Broken(ValueError()))
        log.write(ERROR, "one")
        del log.outs[:2]
        self.assertEqual(len(lines(self.path)), 1)
