"""Where a journal lies: a region of a board's flash, else a file; and what is said of it."""

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
        self.lines = {"persistence": 7}


class Case(unittest.TestCase):
    def setUp(self):
        self.said = []
        self.write, log.write = log.write, self.note
        self.told = []  # what is no warning
        self.modules = None
        self.brokers = []
        self.apps = []

    def note(self, bit, text):
        (self.told if bit == INFORMATION else self.said).append(text)

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
        """The broker of an App that keeps what it promises as that board does."""
        if "persistence_location" not in settings:
            settings["persistence_file"] = self.path = path or scratch.path()
        app = App(**settings)
        self.apps.append(app)
        app.board = board
        start.start(app)
        self.brokers.append(app.broker)
        return app.broker

    def release(self):
        """As the end of whoever was started before: nobody keeps a journal any more."""
        for app in self.apps:
            if app.lock:
                app.lock.close()
        self.apps.clear()

    def medium(self, board, **settings):
        return type(self.started(board, **settings).journal.medium).__name__


class TestRegions(Case):
    def lives_on(self, board):
        """Retained by one broker, there in the next: through the loop, without a close."""
        broker = self.started(board)
        world = World(broker)
        client = world.client("c")
        client.send(publish("t", b"kept", retain=True))
        world.turn(3)
        broker = self.started(board)
        self.assertEqual(self.said, [])
        text = "The journal: 0 sessions, 1 messages (0 deliveries, 1 retained) are back."
        self.assertEqual(self.told, [text])
        self.assertEqual(broker.retained.names.count(), 1)
        return broker.journal.medium

    def on_each(self, boards, modules):
        """Every board with a chip of its own: its name and the chip."""
        for board in boards:
            self.said.clear()
            self.told.clear()
            chip, self.modules = modules()
            yield board, chip
            self.modules.undo()
        self.modules = None

    def test_an_rp2_has_what_lies_behind_the_file_system(self):
        for board, chip in self.on_each(RP2S, lambda: pico(54, 30)):
            medium = self.lives_on(board)
            self.assertEqual(medium.blocks, 24)
            self.assertEqual(sum(chip.erases[:30]), 0)

    def test_where_files_have_all_of_it_there_is_none(self):
        for board, chip in self.on_each(RP2S, lambda: pico(54, 54)):
            self.assertEqual(self.medium(board), "FileMedium")
            self.assertEqual(chip.programmed, 0)

    def test_nothing_is_taken_from_a_file_system_that_does_not_tell_its_end(self):
        chip, self.modules = pico(54, 30, VfsFat)
        region = __import__(f"slotmq_boards.{PICO}.region", None, None, ["region"])
        self.assertIsNone(region.region())
        self.assertEqual(chip.programmed, 0)

    def test_an_esp32_has_the_partition_of_that_name(self):
        for board, chip in self.on_each(ESP32S, lambda: esp32(vfs=30, slotmq=24)):
            medium = self.lives_on(board)
            self.assertEqual(medium.blocks, 24)
            self.assertEqual(sum(chip.erases[:30]), 0)

    def test_without_it_there_is_none(self):
        for board, _ in self.on_each(ESP32S, lambda: esp32(vfs=54)):
            self.assertEqual(self.medium(board), "FileMedium")

    def test_one_that_is_too_small_is_not_used_and_that_is_said(self):
        chip, self.modules = pico(54, 44)
        self.assertEqual(self.medium(PICO), "FileMedium")
        self.assertIn("too small", self.said[0])
        self.assertIn(self.path, self.said[0])
        self.assertEqual(chip.programmed, 0)

    def test_limits_that_are_too_high_for_one_with_a_journal_are_refused(self):
        """A file in its place would have nothing of what is kept, and lower limits no news."""
        chip, self.modules = pico(54, 30)
        low, high = ({"message_bytes": n} for n in (8000, 60000))
        broker = self.started(PICO, limits=low)
        self.assertEqual(broker.journal.medium.blocks, 24)
        broker.publish("t", "kept", 0, True)
        broker.journal.commit()
        before = bytes(chip.data)
        for _ in range(2):
            with self.assertRaises(ConfError) as caught:
                self.started(PICO, limits=high)
            text = str(caught.exception)
            self.assertTrue(text.startswith("slotmq.conf:7: persistence: expected limits that"))
            self.assertIn("has a journal", text)
            self.assertIn("lower one (message_bytes", text)
            self.assertIn("set persistence_location", text)
        self.assertEqual(bytes(chip.data), before)
        folder, name = scratch.path().rsplit("/", 1)
        asked = {"persistence_location": folder, "persistence_file": name}
        self.assertEqual(self.medium(PICO, limits=high, **asked), "FileMedium")
        self.said.clear()
        self.assertEqual(self.started(PICO, limits=low).retained.names.count(), 1)

    def test_limits_that_are_low_enough_for_the_region_leave_a_journal_in_its_file(self):
        """The region would begin with nothing. Without the file it has the journal."""
        chip, self.modules = pico(54, 30)
        low, high = ({"message_bytes": n} for n in (8000, 60000))
        broker = self.started(PICO, limits=high)
        broker.publish("t", "kept", 0, True)
        broker.journal.commit()
        path = self.path
        for limits in (low, high, low):
            broker.journal.medium.close()
            self.release()
            self.said.clear()
            broker = self.started(PICO, path, limits=limits)
            self.assertEqual(broker.retained.names.count(), 1)
            self.assertIn(path, self.said[0])
            self.assertEqual("without that file" in self.said[0], limits is low)
        self.assertEqual(chip.programmed, 0)
        self.release()
        os.remove(path)  # noqa: PTH107
        self.said.clear()
        self.assertEqual(self.started(PICO, path, limits=low).journal.medium.blocks, 24)
        self.assertEqual(self.said, [])

    def test_a_file_beside_a_region_that_has_the_journal_is_not_read_and_that_is_said(self):
        _, self.modules = pico(54, 30)
        broker = self.started(PICO)
        broker.publish("t", "kept", 0, True)
        broker.journal.commit()
        self.said.clear()
        with open(self.path, "wb") as file:  # noqa: PTH123
            file.write(b"newer")
        self.assertEqual(self.started(PICO, self.path).retained.names.count(), 1)
        self.assertIn(self.path + " is not read", self.said[0])

    def test_a_location_that_is_asked_for_is_a_file(self):
        _, self.modules = pico(54, 30)
        folder, name = scratch.path().rsplit("/", 1)
        broker = self.started(PICO, persistence_location=folder, persistence_file=name)
        self.assertEqual(broker.journal.medium.path, folder + "/" + name)

    def test_on_a_computer_that_runs_as_a_board_there_is_none(self):
        for boards in (RP2S, ESP32S, ("HOST",)):
            for board in boards:
                self.assertEqual(self.medium(board), "FileMedium")


class OnMicroPython:
    def mounted(self, kind, **options):
        """A file system on a device in RAM, in the place /keep."""
        device = Ram(64, 4096) if kind is vfs.VfsLfs2 else Ram(512, 512)
        kind.mkfs(device, **options)
        vfs.mount(kind(device, **options), "/keep")

    def tearDown(self):
        Case.tearDown(self)
        vfs.umount("/keep")

    def test_on_littlefs_the_wear_is_said(self):
        self.mounted(vfs.VfsLfs2, progsize=256)
        broker = self.started("HOST", persistence_location="/keep/")
        self.assertEqual(len(self.said), 1)
        self.assertIn("1.1 blocks and programs 2.4 KB", self.said[0])
        self.assertIn("115 days", self.said[0])
        broker.journal.close()

    def test_fat_is_refused(self):
        self.mounted(vfs.VfsFat)
        with self.assertRaises(OSError) as caught:
            self.started("HOST", persistence_location="/keep/")
        self.assertIn("VfsFat cannot keep a promise", str(caught.exception))


if MICROPYTHON:

    class TestFileSystems(OnMicroPython, Case):
        pass


class TestLock(Case):
    def again(self):
        folder, name = self.path.rsplit("/", 1)
        self.started("HOST", persistence_location=folder + "/", persistence_file=name)

    def test_a_journal_has_one_broker(self):
        self.started("HOST")
        with self.assertRaises(OSError) as caught:
            self.again()
        self.assertIn("no other broker", str(caught.exception))
        self.release()
        self.again()

    def test_a_place_that_is_none_is_named(self):
        with self.assertRaises(ConfError) as caught:
            self.started("HOST", persistence_location="/none/such")
        self.assertIn("expected a folder that is there, not /none/such/", str(caught.exception))


class TestSaid(Case):
    def test_a_file_system_that_nobody_knows_is_named(self):
        self.medium("HOST")
        self.assertEqual(len(self.said), 1 if MICROPYTHON else 0)
        self.assertEqual(["VfsPosix" in text for text in self.said], [True] * len(self.said))
