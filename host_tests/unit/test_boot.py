"""The firmware's start: what it needs, when it gives up, and what it leaves behind."""

import os
import unittest

import board_case  # noqa: F401 - the folder of the firmware
import scratch

from slotmq_run import boot, starts

HOST = '{"board": "RPI_PICO_W", "link": "host", "watchdog": 0}'


class Broker:
    def __init__(self):
        self.turned = 0
        self.fail = None

    def turn(self, _ms):
        self.turned += 1
        if self.fail:
            raise self.fail


class App:
    """In place of slotmq.app."""

    def __init__(self):
        self.broker = Broker()
        self.status = 0
        self.arguments = None

    def main(self, arguments, on_ready):
        self.arguments = arguments
        if self.status:
            return self.status
        try:
            on_ready(self.broker)
        except KeyboardInterrupt:
            return 0
        return 0


class Reset(Exception):
    pass


class Machine:
    def reset(self):
        raise Reset


class TestBoot(unittest.TestCase):
    def setUp(self):
        self.kept = starts._boot, boot.app
        self.app = boot.app = App()
        starts._boot = lambda: boot  # other tests import the modules anew
        self.folder = scratch.path()
        os.mkdir(self.folder)  # noqa: PTH102
        self.folder += "/"

    def tearDown(self):
        starts._boot, boot.app = self.kept

    def write(self, name, text):
        with open(self.folder + name, "w") as file:  # noqa: PTH123
            file.write(text)

    def files(self):
        return sorted(os.listdir(self.folder))  # noqa: PTH208

    def test_it_runs_the_broker_with_the_boards_limits(self):
        self.write("network.json", HOST)
        self.assertEqual(starts.run(self.folder, turns=3), 0)
        expected = ["-c", self.folder + "slotmq.conf", "--board", "RPI_PICO_W"]
        self.assertEqual(self.app.arguments, expected)
        self.assertEqual(self.app.broker.turned, 3)
        self.assertEqual(self.files(), ["network.json"])

    def test_the_third_start_that_dies_is_followed_by_safe_mode(self):
        self.write("network.json", HOST)
        self.app.broker.fail = ValueError("a bug")
        for _ in range(3):
            with self.assertRaises(ValueError):
                starts.run(self.folder)
        self.assertEqual(starts.run(self.folder), 1)
        self.assertEqual(self.app.broker.turned, 3)
        # and the next one tries again
        self.app.broker.fail = None
        self.assertEqual(starts.run(self.folder, turns=1), 0)

    def test_a_start_that_lives_for_a_minute_is_forgotten(self):
        self.write("network.json", HOST)
        now = [0]

        def ticks():
            now[0] += 5000
            return now[0]

        seen = []

        def turn(_ms):
            seen.append(self.files())
            if len(seen) == 20:
                raise ValueError("a bug, later")

        self.app.broker.turn = turn
        kept, boot.ticks_ms = boot.ticks_ms, ticks
        try:
            with self.assertRaises(ValueError):
                starts.run(self.folder)
        finally:
            boot.ticks_ms = kept
        self.assertEqual(seen[0], ["network.json", "slotmq.boots"])
        self.assertEqual(seen[-1], ["network.json"])

    def test_what_cannot_be_used_is_safe_mode(self):
        for text in ("", "{", "[]", '{"board": "X"}', '{"link": "pigeon"}'):
            self.write("network.json", text)
            self.assertEqual(starts.run(self.folder, turns=1), 1)
        self.assertEqual(self.app.broker.turned, 0)

    def test_no_configuration_at_all_is_safe_mode(self):
        self.assertEqual(starts.run(self.folder, turns=1), 1)
        self.assertEqual(self.files(), [])

    def test_a_broker_that_does_not_start_is_safe_mode(self):
        self.write("network.json", HOST)
        self.app.status = 3
        self.assertEqual(starts.run(self.folder, turns=1), 1)
        self.assertEqual(self.files(), ["network.json"])

    def test_what_the_machine_cannot_do_may_pass_and_three_such_starts_are_safe_mode(self):
        self.write("network.json", HOST)
        self.app.status = 1
        self.three_dead_starts_are_safe_mode()
        self.app.status = 0
        self.assertEqual(starts.run(self.folder, turns=1), 0)

    def test_so_may_a_driver_that_does_not_answer(self):
        self.write("network.json", HOST)

        def fails(_config):
            raise OSError(110)

        kept, boot.links.make = boot.links.make, fails
        try:
            self.three_dead_starts_are_safe_mode()
        finally:
            boot.links.make = kept

    def test_ctrl_c_is_an_orderly_end(self):
        self.write("network.json", HOST)
        self.app.broker.fail = KeyboardInterrupt()
        self.assertEqual(starts.run(self.folder), 0)

    def test_a_broker_that_fails_is_heard_of(self):
        self.write("network.json", HOST)
        self.app.broker.fail = ValueError("a bug")
        with self.assertRaises(ValueError):
            starts.run(self.folder)
        self.assertEqual(self.files(), ["network.json", "slotmq.boots"])

    def test_a_board_starts_again_then_and_three_such_starts_are_safe_mode(self):
        self.write("network.json", HOST)
        self.app.broker.fail = ValueError("a bug")
        self.three_dead_starts_are_safe_mode()

    def test_so_are_three_whose_code_cannot_be_loaded(self):
        """An .mpy file that was cut off is a ValueError, or no memory for it a MemoryError."""
        self.write("network.json", HOST)

        def fails():
            raise MemoryError

        starts._boot = fails
        self.three_dead_starts_are_safe_mode()
        self.assertEqual(self.app.broker.turned, 0)

    def test_so_are_three_that_a_driver_ends(self):
        self.write("network.json", HOST)

        def fails(_config):
            raise RuntimeError("no chip answers")

        kept, boot.links.make = boot.links.make, fails
        try:
            self.three_dead_starts_are_safe_mode()
        finally:
            boot.links.make = kept

    def three_dead_starts_are_safe_mode(self):
        kept, starts.machine = starts.machine, Machine()
        try:
            for count in range(1, 4):
                with self.assertRaises(Reset):
                    starts.run(self.folder)
                with open(self.folder + "slotmq.boots") as file:  # noqa: PTH123
                    self.assertEqual(file.read(), "+" * count)
            self.assertEqual(starts.run(self.folder), 1)
        finally:
            starts.machine = kept
        self.assertEqual(self.files(), ["network.json"])

    def test_a_file_of_the_code_that_is_missing_is_safe_mode_at_once(self):
        self.write("network.json", HOST)

        def fails():
            raise ImportError("a deploy was interrupted")

        starts._boot = fails
        self.assertEqual(starts.run(self.folder), 1)
        self.assertEqual(self.files(), ["network.json"])

    def test_what_hangs_while_it_is_loaded_is_bitten(self):
        self.write("network.json", HOST)
        dogs = []

        class Dog:
            def __init__(self, timeout_ms):
                dogs.append(timeout_ms)

            def start(self):
                dogs.append("start")

            def feed(self):
                dogs.append("feed")

            def release(self):
                dogs.append("release")

        def load():
            dogs.append("load")
            return boot

        from slotmq_run import watch

        kept, watch.Dog, starts._boot = watch.Dog, Dog, load
        try:
            self.assertEqual(starts.run(self.folder, turns=1), 0)
        finally:
            watch.Dog = kept
        self.assertEqual(dogs[:4], [8000, "start", "load", "release"])

    def test_ctrl_c_while_it_loads_is_no_dead_start(self):
        self.write("network.json", HOST)

        def fails():
            raise KeyboardInterrupt

        starts._boot = fails
        with self.assertRaises(KeyboardInterrupt):
            starts.run(self.folder)
        self.assertEqual(self.files(), ["network.json"])


if __name__ == "__main__":
    unittest.main()
