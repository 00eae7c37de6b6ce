"""An application beside the broker: what it may be, and what happens when it fails."""

import os
import sys

from boot_case import HOST, App, BootCase, boot, boot_counter


class TestApplication(BootCase):
    def setUp(self):
        super().setUp()
        boot_counter._boot = self.kept[0]  # which loads the application
        self.before = boot.Board, list(sys.path), os.getcwd()  # noqa: PTH109
        os.chdir(self.folder)
        self.write("network.json", HOST)
        self.app.broker.most = 3
        self.seen = self.app.broker.seen

    def tearDown(self):
        boot.Board, sys.path[:], before = self.before
        os.chdir(before)
        sys.modules.pop("app", None)
        super().tearDown()

    def run_it(self, text):
        """A start with this app.py; its exit status."""
        sys.modules.pop("app", None)
        self.write("app.py", text)
        boot.Board = self.before[0]
        boot.app = App()
        boot.app.broker.most = 3
        self.seen = boot.app.broker.seen
        return boot_counter.run()

    def test_without_an_application_the_broker_runs(self):
        self.assertEqual(boot_counter.run(), 0)
        self.assertEqual(self.seen, ["tables", 250, 250, 250])

    def test_it_is_loaded_before_the_tables_and_started_after_them(self):
        text = "import sys\nLOADED = []\n"
        text += "def start(broker):\n broker.seen.append('start')\n"
        self.assertEqual(self.run_it(text), 0)
        self.assertEqual(self.seen, ["tables", "start", 250, 250, 250])
        self.assertEqual(sys.modules["app"].LOADED, [])

    def test_the_watchdog_starts_before_it_and_is_fed_after_its_start(self):
        done = []

        class Dog(boot.watch.Dog):
            def start(self):
                done.append("dog")

            def feed(self):
                done.append("fed")

        kept, boot.watch.Dog = boot.watch.Dog, Dog
        boot.done = done
        text = "from slotmq_run import boot\n"
        text += "def start(broker):\n boot.done.append('start')\n"
        try:
            self.assertEqual(self.run_it(text), 0)
        finally:
            boot.watch.Dog = kept
        self.assertEqual(done[-6:-2], ["dog", "start", "fed", "fed"])  # and then each turn

    def test_a_function_is_called_between_two_turns(self):
        text = "def start(broker):\n return lambda: broker.seen.append('step')\n"
        self.assertEqual(self.run_it(text), 0)
        self.assertEqual(self.seen, ["tables", 50, "step", 50, "step", 50, "step"])

    def test_a_coroutine_is_a_task_beside_the_turns(self):
        text = "import asyncio\nasync def start(broker):\n while True:\n"
        text += "  broker.seen.append('task')\n  await asyncio.sleep(0)\n"
        self.assertEqual(self.run_it(text), 0)
        self.assertEqual(self.seen.count(5), 3)
        self.assertTrue(self.seen.count("task") > 1)

    def test_after_a_coroutine_has_ended_the_broker_runs_on(self):
        text = "async def start(broker):\n broker.seen.append('task')\n"
        self.assertEqual(self.run_it(text), 0)
        self.assertEqual(self.seen.count(5), 3)
        self.assertEqual(self.seen.count("task"), 1)

    def test_one_that_cannot_be_loaded_is_safe_mode_at_once(self):
        for text in ("def start(broker:\n", "import nothing_of_that_name\n", "x = 1\n"):
            self.assertEqual(self.run_it(text), 1)
            self.assertEqual(self.seen, [])
            self.assertFalse("slotmq.boots" in os.listdir())  # noqa: PTH208

    def test_three_starts_that_end_by_its_exception_are_safe_mode(self):
        for text in (
            "raise OSError(5)\n",
            "def start(broker):\n raise OSError(5)\n",
            "def start(broker):\n def step():\n  raise OSError(5)\n return step\n",
            "async def start(broker):\n raise OSError(5)\n",
        ):
            for _ in range(3):
                with self.assertRaises(OSError):
                    self.run_it(text)
            self.assertEqual(self.run_it(text), 1)

    def test_start_must_return_a_function_a_coroutine_or_none(self):
        with self.assertRaises(TypeError):
            self.run_it("def start(broker):\n return 5\n")
