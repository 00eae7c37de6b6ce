"""The firmware's start: order of its steps, and what it stores."""

from boot_case import HOST, BootCase, Dog, boot, boot_counter


class TestBoot(BootCase):
    def test_it_runs_the_broker_with_the_limits_of_the_board(self):
        self.write("network.json", HOST)
        self.assertEqual(boot_counter.run(self.folder, turns=3), 0)
        expected = ["-c", self.folder + "slotmq.conf", "--board", "RPI_PICO_W"]
        self.assertEqual(self.app.arguments, expected)
        self.assertEqual(self.app.broker.turned, 3)
        self.assertEqual(self.files(), ["network.json"])

    def test_after_a_minute_a_start_does_not_count_as_failed(self):
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
                boot_counter.run(self.folder)
        finally:
            boot.ticks_ms = kept
        self.assertEqual(seen[0], ["network.json", "slotmq.boots"])
        self.assertEqual(seen[-1], ["network.json"])

    def test_a_memory_error_of_the_clock_does_not_end_the_broker(self):
        from slotmq_run import wall_clock

        asked = []

        def fails(_clock, now):
            asked.append(now)
            raise MemoryError

        def ticks():
            asked.append(0)
            return len(asked) * 1000

        self.write("network.json", HOST.replace("}", ', "time": "192.0.2.1"}'))
        kept = wall_clock.Clock.step, boot.ticks_ms
        wall_clock.Clock.step, boot.ticks_ms = fails, ticks
        try:
            self.assertEqual(boot_counter.run(self.folder, turns=3), 0)
        finally:
            wall_clock.Clock.step, boot.ticks_ms = kept
        self.assertEqual(len([now for now in asked if now]), 3)

    def test_the_link_starts_before_the_broker_and_under_the_watchdog(self):
        self.write("network.json", HOST)

        class Link(boot.network_link.Host):
            def start(self, now):
                Dog.calls.append("link")

        def main(arguments, on_ready):
            Dog.calls.append("broker")
            on_ready(self.app.broker)
            return 0

        boot.network_link.make = lambda _config: Link()
        self.app.main = main
        calls = self.calls_of_a_start(boot.watch)
        expected = ["start", "link", "release", "broker", "start", "release"]
        # Before that it ran while the code was loaded.
        self.assertEqual([call for call in calls if call in expected][-6:], expected)

    def calls_of_a_start(self, watch):
        """What this module's watchdog and others noted, without timeouts."""
        Dog.calls.clear()
        kept, watch.Dog = watch.Dog, Dog
        try:
            self.assertEqual(boot_counter.run(self.folder, turns=1), 0)
        finally:
            watch.Dog = kept
        return Dog.calls

    def test_ctrl_c_ends_with_status_0(self):
        self.write("network.json", HOST)
        self.app.broker.fail = KeyboardInterrupt()
        self.assertEqual(boot_counter.run(self.folder), 0)

    def test_an_exception_of_the_broker_is_raised_and_counted(self):
        self.write("network.json", HOST)
        self.app.broker.fail = ValueError("a bug")
        with self.assertRaises(ValueError):
            boot_counter.run(self.folder)
        self.assertEqual(self.files(), ["network.json", "slotmq.boots"])

    def test_the_watchdog_runs_while_the_code_is_loaded(self):
        self.write("network.json", HOST)

        def load():
            Dog.calls.append("load")
            return boot

        from slotmq_run import watch

        boot_counter._boot = load
        calls = self.calls_of_a_start(watch)
        self.assertEqual(calls[:4], [8000, "start", "load", "release"])

    def test_ctrl_c_while_the_code_is_loaded_is_no_failed_start(self):
        self.write("network.json", HOST)

        def fails():
            raise KeyboardInterrupt

        boot_counter._boot = fails
        with self.assertRaises(KeyboardInterrupt):
            boot_counter.run(self.folder)
        self.assertEqual(self.files(), ["network.json"])
