"""Failed starts: how they are counted, what is stored, and when safe mode begins."""

from boot_case import HOST, BootCase, Reset, boot, boot_counter


class TestFailedStarts(BootCase):
    def test_three_exceptions_are_safe_mode_and_then_it_tries_again(self):
        self.write("network.json", HOST)
        self.app.broker.fail = ValueError("a bug")
        for _ in range(3):
            with self.assertRaises(ValueError):
                boot_counter.run(self.folder)
        self.assertEqual(boot_counter.run(self.folder), 1)
        self.assertEqual(self.app.broker.turned, 3)
        # and the next one tries again
        self.app.broker.fail = None
        self.assertEqual(boot_counter.run(self.folder, turns=1), 0)

    def test_a_wrong_configuration_is_safe_mode(self):
        for text in ("", "{", "[]", '{"board": "X"}', '{"link": "pigeon"}'):
            self.write("network.json", text)
            self.assertEqual(boot_counter.run(self.folder, turns=1), 1)
        self.assertEqual(self.app.broker.turned, 0)

    def test_no_configuration_is_safe_mode(self):
        self.assertEqual(boot_counter.run(self.folder, turns=1), 1)
        self.assertEqual(self.files(), [])

    def test_a_refused_configuration_of_the_broker_is_safe_mode(self):
        self.write("network.json", HOST)
        self.app.status = 3
        self.assertEqual(boot_counter.run(self.folder, turns=1), 1)
        self.assertEqual(self.files(), ["network.json"])

    def test_three_starts_that_the_machine_prevents_are_safe_mode(self):
        self.write("network.json", HOST)
        self.app.status = 1
        self.check_safe_mode_after_three("RuntimeError('the broker did not start: ")
        self.app.status = 0
        self.assertEqual(boot_counter.run(self.folder, turns=1), 0)

    def test_a_board_resets_after_each_exception_and_three_of_them_are_safe_mode(self):
        for where, error, logged in (
            ("turn", ValueError("a bug"), "ValueError("),
            ("turn", ImportError("no module named 'umqtt'"), "ImportError("),  # of an application
            ("turn", ValueError("a\nbug " * 100), "ValueError('a\\nbug "),  # is cut off
            ("link", OSError(110), "OSError(110"),
            ("link", RuntimeError("no chip answers"), "RuntimeError('no chip"),
            ("load", MemoryError(), "MemoryError("),
        ):
            with self.subTest(where=where, logged=logged):
                self.tearDown()
                self.setUp()
                self.write("network.json", HOST)

                def fails(*_, error=error):
                    raise error

                if where == "turn":
                    self.app.broker.fail = error
                elif where == "link":
                    boot.network_link.make = fails
                else:
                    boot_counter._boot = fails
                self.check_safe_mode_after_three(logged)
                self.assertEqual(self.app.broker.turned, 3 if where == "turn" else 0)
                self.assertTrue(len(self.stayed[0][0]) < 250)

    def test_a_missing_file_of_the_code_is_safe_mode_at_once(self):
        self.write("network.json", HOST)

        def fails():
            raise ImportError("a deploy was interrupted")

        boot_counter._boot = fails
        self.assertEqual(boot_counter.run(self.folder), 1)
        self.assertEqual(self.files(), ["network.json"])

    def check_safe_mode_after_three(self, logged):
        self.on_a_board()
        for count in range(1, 4):
            with self.assertRaises(Reset):
                boot_counter.run(self.folder)
            with open(self.folder + "slotmq.boots") as file:  # noqa: PTH123
                text = file.read()
            self.assertTrue(text.startswith("+" * count + " " + logged), text)
        with self.assertRaises(Reset):
            boot_counter.run(self.folder)
        ((why, pause, networked),) = self.stayed
        self.assertTrue(
            why.startswith("3 starts ended within a minute, the last one by " + logged)
        )
        self.assertEqual((pause, networked), (120, True))
        with open(self.folder + "slotmq.boots") as file:  # noqa: PTH123
            self.assertEqual(file.read(), "-")
