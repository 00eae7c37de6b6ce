"""Where a journal lies: in a region of a board's flash, or else in a file; what is reported."""

import os
import sys
import unittest

import scratch
from board_flash import VfsFat, esp32, pico
from fakes import World
from media import Ram
from packets import publish

from slotmq import Broker, Limits, Settings
from slotmq.config.settings import ConfError
from slotmq.journal import start
from slotmq.platform import log
from slotmq.platform.runtime import MICROPYTHON

if MICROPYTHON:
    import vfs

INFORMATION = 8  # as in platform/log.py
PICO, ESP32 = "RPI_PICO_W", "ESP32_GENERIC"
RP2S = (PICO, "RPI_PICO2_W", "W5500_EVB_PICO")
ESP32S = (ESP32, "ESP32_GENERIC_C3", "ESP32_GENERIC_S3")


class App:
    """What journal/start.py asks of an App."""

    def __init__(self, limits=(), **settings):
        self.settings = Settings(persistence=True, sys_interval=0, **settings)
        self.limits = Limits(**dict(limits))
        self.broker = Broker(self.limits, self.settings)
        self.lock = None
        self.conf = "slotmq.conf"
        self.lines = {"persistence": "slotmq.conf:7"}


class LocationCase(unittest.TestCase):
    def setUp(self):
        self.warnings = []
        self.information = []
        self.write, log.write = log.write, self.log
        self.modules = None
        self.brokers = []
        self.apps = []

    def log(self, bit, text):
        (self.information if bit == INFORMATION else self.warnings).append(text)

    def tearDown(self):
        log.write = self.write
        for broker in self.brokers:
            broker.journal.medium.close()
        self.release()
        if self.modules:
            self.modules.undo()
        for name in [name for name in sys.modules if name.startswith("slotmq_boards.")]:
            if "region" in name:
                del sys.modules[name]

    def started(self, board, path=None, **settings):
        """The broker of an App with a journal, on that board."""
        if "persistence_location" not in settings:
            settings["persistence_file"] = self.path = path or scratch.path()
        app = App(**settings)
        self.apps.append(app)
        app.board = board
        start.start(app)
        self.brokers.append(app.broker)
        return app.broker

    def release(self):
        """The end of all apps: the locks on their journals are released."""
        for app in self.apps:
            if app.lock:
                app.lock.close()
        self.apps.clear()

    def medium(self, board, **settings):
        return type(self.started(board, **settings).journal.medium).__name__


class TestRegions(LocationCase):
    def retain(self, broker):
        broker.publish("t", "kept", 0, True)
        broker.journal.commit()

    def restarted(self, board):
        """A retained message is restored by a second broker; its medium."""
        broker = self.started(board)
        world = World(broker)
        client = world.client("c")
        client.send(publish("t", b"kept", retain=True))
        world.turn(3)
        broker = self.started(board)
        self.assertEqual(self.warnings, [])
        text = "The journal: 0 sessions, 1 messages (0 deliveries, 1 retained) are back."
        self.assertEqual(self.information, [text])
        self.assertEqual(broker.retained.names.count(), 1)
        return broker.journal.medium

    def on_each(self, boards, modules):
        """(board, chip) for each board."""
        for board in boards:
            self.warnings.clear()
            self.information.clear()
            chip, self.modules = modules()
            yield board, chip
            self.modules.undo()
        self.modules = None

    def test_it_is_what_lies_behind_the_file_system_or_the_partition_slotmq(self):
        for boards, modules in (
            (RP2S, lambda: pico(54, 30)),
            (ESP32S, lambda: esp32(vfs=30, slotmq=24)),
        ):
            for board, chip in self.on_each(boards, modules):
                medium = self.restarted(board)
                self.assertEqual(medium.blocks, 24)
                self.assertEqual(sum(chip.erases[:30]), 0)

    def test_without_such_space_it_is_a_file(self):
        for boards, modules in ((RP2S, lambda: pico(54, 54)), (ESP32S, lambda: esp32(vfs=54))):
            for board, chip in self.on_each(boards, modules):
                self.assertEqual(self.medium(board), "FileMedium")
                self.assertEqual(chip.programmed, 0)

    def test_behind_a_file_system_without_a_known_end_there_is_none(self):
        chip, self.modules = pico(54, 30, VfsFat)
        region = __import__(f"slotmq_boards.{PICO}.region", None, None, ["region"])
        self.assertIsNone(region.region())
        self.assertEqual(chip.programmed, 0)

    def test_a_region_that_is_too_small_is_not_used_and_that_is_logged(self):
        chip, self.modules = pico(54, 44)
        self.assertEqual(self.medium(PICO), "FileMedium")
        self.assertIn("too small", self.warnings[0])
        self.assertIn(self.path, self.warnings[0])
        self.assertEqual(chip.programmed, 0)

    def test_limits_too_high_for_a_region_with_a_journal_are_refused(self):
        """A file in its place would begin without what is stored."""
        chip, self.modules = pico(54, 30)
        low, high = ({"message_bytes": n} for n in (8000, 60000))
        broker = self.started(PICO, limits=low)
        self.assertEqual(broker.journal.medium.blocks, 24)
        self.retain(broker)
        before = bytes(chip.data)
        for _ in range(2):
            with self.assertRaises(ConfError) as caught:
                self.started(PICO, limits=high)
            text = str(caught.exception)
            self.assertTrue(text.startswith("slotmq.conf:7: persistence: "))
            self.assertIn("has a journal", text)
            self.assertIn("lower one (message_bytes", text)
            self.assertIn("set persistence_location", text)
        self.assertEqual(bytes(chip.data), before)
        folder, name = scratch.path().rsplit("/", 1)
        asked = {"persistence_location": folder, "persistence_file": name}
        self.assertEqual(self.medium(PICO, limits=high, **asked), "FileMedium")
        self.warnings.clear()
        self.assertEqual(self.started(PICO, limits=low).retained.names.count(), 1)

    def test_a_journal_in_a_file_stays_there_though_lower_limits_fit_the_region(self):
        """The region would begin without what is stored. If the file is removed, it is used."""
        chip, self.modules = pico(54, 30)
        low, high = ({"message_bytes": n} for n in (8000, 60000))
        broker = self.started(PICO, limits=high)
        self.retain(broker)
        path = self.path
        for limits in (low, high, low):
            broker.journal.medium.close()
            self.release()
            self.warnings.clear()
            broker = self.started(PICO, path, limits=limits)
            self.assertEqual(broker.retained.names.count(), 1)
            self.assertIn(path, self.warnings[0])
            self.assertEqual("without that file" in self.warnings[0], limits is low)
        self.assertEqual(chip.programmed, 0)
        self.release()
        os.remove(path)  # noqa: PTH107
        self.warnings.clear()
        self.assertEqual(self.started(PICO, path, limits=low).journal.medium.blocks, 24)
        self.assertEqual(self.warnings, [])

    def test_a_file_beside_a_region_with_a_journal_is_not_read_and_that_is_logged(self):
        _, self.modules = pico(54, 30)
        broker = self.started(PICO)
        self.retain(broker)
        self.warnings.clear()
        with open(self.path, "wb") as file:  # noqa: PTH123
            file.write(b"newer")
        self.assertEqual(self.started(PICO, self.path).retained.names.count(), 1)
        self.assertIn(self.path + " is not read", self.warnings[0])

    def test_persistence_location_means_a_file(self):
        _, self.modules = pico(54, 30)
        folder, name = scratch.path().rsplit("/", 1)
        broker = self.started(PICO, persistence_location=folder, persistence_file=name)
        self.assertEqual(broker.journal.medium.path, folder + "/" + name)

    def test_on_a_computer_that_runs_as_a_board_it_is_a_file(self):
        for boards in (RP2S, ESP32S, ("HOST",)):
            for board in boards:
                self.assertEqual(self.medium(board), "FileMedium")


class OnMicroPython:
    def mounted(self, kind, **options):
        """A file system in RAM, at /keep."""
        device = Ram(64, 4096) if kind is vfs.VfsLfs2 else Ram(512, 512)
        kind.mkfs(device, **options)
        vfs.mount(kind(device, **options), "/keep")

    def tearDown(self):
        LocationCase.tearDown(self)
        vfs.umount("/keep")

    def test_on_littlefs_the_wear_is_logged(self):
        self.mounted(vfs.VfsLfs2, progsize=256)
        broker = self.started("HOST", persistence_location="/keep/")
        self.assertEqual(len(self.warnings), 1)
        self.assertIn("1.1 blocks", self.warnings[0])
        self.assertIn("2.4 KB", self.warnings[0])
        self.assertIn("115 days", self.warnings[0])
        broker.journal.close()

    def test_fat_is_refused(self):
        self.mounted(vfs.VfsFat)
        with self.assertRaises(OSError) as caught:
            self.started("HOST", persistence_location="/keep/")
        self.assertIn("VfsFat", str(caught.exception))


if MICROPYTHON:

    class TestFileSystems(OnMicroPython, LocationCase):
        pass


class TestHost(LocationCase):
    def test_a_second_broker_with_the_same_journal_is_refused(self):
        self.started("HOST")
        folder, name = self.path.rsplit("/", 1)
        options = {"persistence_location": folder + "/", "persistence_file": name}
        with self.assertRaises(OSError) as caught:
            self.started("HOST", **options)
        self.assertIn("no other broker", str(caught.exception))
        self.release()
        self.started("HOST", **options)

    def test_a_location_that_is_not_a_folder_is_named(self):
        with self.assertRaises(ConfError) as caught:
            self.started("HOST", persistence_location="/none/such")
        self.assertIn("not /none/such/", str(caught.exception))

    def test_an_unknown_file_system_is_named(self):
        self.medium("HOST")
        self.assertEqual(len(self.warnings), 1 if MICROPYTHON else 0)
        self.assertEqual(
            ["VfsPosix" in text for text in self.warnings], [True] * len(self.warnings)
        )
