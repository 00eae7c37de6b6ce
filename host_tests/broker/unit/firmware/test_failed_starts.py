"""Failed starts: how they are counted, what is stored, and when safe mode begins."""

from boot_case import HOST, Case, Reset, boot, starts


class TestFailedStarts(Case):
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
        self.three_dead_starts_are_safe_mode(told="RuntimeError('the broker did not start: ")
        self.app.status = 0
        self.assertEqual(starts.run(self.folder, turns=1), 0)

    def test_so_may_a_driver_that_does_not_answer(self):
        self.write("network.json", HOST)

        def fails(_config):
            raise OSError(110)

        kept, boot.links.make = boot.links.make, fails
        try:
            self.three_dead_starts_are_safe_mode(told="OSError(110")
        finally:
            boot.links.make = kept

    def test_a_board_starts_again_then_and_three_such_starts_are_safe_mode(self):
        self.write("network.json", HOST)
        self.app.broker.fail = ValueError("a bug")
        self.three_dead_starts_are_safe_mode()

    def test_an_application_that_misses_a_module_is_told_as_any_other_end(self):
        self.write("network.json", HOST)
        self.app.broker.fail = ImportError("no module named 'umqtt'")
        self.three_dead_starts_are_safe_mode(told="ImportError(")

    def test_so_are_three_whose_code_cannot_be_loaded(self):
        """An .mpy file that was cut off is a ValueError, or no memory for it a MemoryError."""
        self.write("network.json", HOST)

        def fails():
            raise MemoryError

        starts._boot = fails
        self.three_dead_starts_are_safe_mode(told="MemoryError(")
        self.assertEqual(self.app.broker.turned, 0)

    def test_so_are_three_that_a_driver_ends(self):
        self.write("network.json", HOST)

        def fails(_config):
            raise RuntimeError("no chip answers")

        kept, boot.links.make = boot.links.make, fails
        try:
            self.three_dead_starts_are_safe_mode(told="RuntimeError('no chip")
        finally:
            boot.links.make = kept

    def test_a_cause_is_cut_off_and_stays_on_its_line(self):
        self.write("network.json", HOST)
        self.app.broker.fail = ValueError("a\nbug " * 100)
        self.three_dead_starts_are_safe_mode(told="ValueError('a\\nbug ")
        self.assertTrue(len(self.stayed[0][0]) < 250)

    def test_a_file_of_the_code_that_is_missing_is_safe_mode_at_once(self):
        self.write("network.json", HOST)

        def fails():
            raise ImportError("a deploy was interrupted")

        starts._boot = fails
        self.assertEqual(starts.run(self.folder), 1)
        self.assertEqual(self.files(), ["network.json"])

    def three_dead_starts_are_safe_mode(self, *, told="ValueError"):
        self.on_a_board()
        for count in range(1, 4):
            with self.assertRaises(Reset):
                starts.run(self.folder)
            with open(self.folder + "slotmq.boots") as file:  # noqa: PTH123
                text = file.read()
            self.assertTrue(text.startswith("+" * count + " " + told), text)
        with self.assertRaises(Reset):
            starts.run(self.folder)
        ((why, pause, networked),) = self.stayed
        self.assertTrue(why.startswith("3 starts ended within a minute, the last one by " + told))
        self.assertEqual((pause, networked), (120, True))
        with open(self.folder + "slotmq.boots") as file:  # noqa: PTH123
            self.assertEqual(file.read(), "-")
