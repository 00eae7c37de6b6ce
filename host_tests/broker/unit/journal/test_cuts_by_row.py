"""While a record of each kind is written, the power is cut after every byte, and in every
operation of a chip or a disk: a start restores a state that fits what clients have received."""

import unittest

from invariants import broken
from journal_case import collect
from memory_medium import MemoryMedium, PowerCut
from row_kinds import SCENES, Stage, play
from stored_state import tables

from slotmq.journal.medium_file import FileMedium
from slotmq.journal.medium_flash import FlashMedium
from slotmq.journal.reader import Reader
from slotmq.journal.records import LAST_TYPE
from slotmq.platform import heap
from slotmq.platform.runtime import MICROPYTHON
from slotmq_tools.sim import flash

if MICROPYTHON:
    import vfs
else:
    import media_disk

STEP = 23 if MICROPYTHON else 1
SEEDS = 1 if MICROPYTHON else 4


class Scene:
    """A scene, played without a cut: its states, and what clients had received in each."""

    def __init__(self, name):
        self.name = name
        before, steps, self.kind = SCENES[name]
        self.before, self.steps = before, steps
        self.medium = MemoryMedium()
        self.stage = Stage(self.medium)
        play(self.stage, before)
        self.written = self.medium.written_bytes()
        self.generation = self.medium.current
        self.start = len(self.medium.durable[self.generation])
        self.states = []
        self.note()
        play(self.stage, steps, self.note)
        self.written = self.medium.written_bytes() - self.written

    def note(self):
        after = Stage(self.medium.after_the_cut()).broker
        self.states.append((self.stage.received(), tables(after)))

    def may_be(self, received):
        """The states that a start may restore if clients have received so many bytes."""
        return [state for sent, state in self.states if sent >= received]

    def kinds(self):
        """The kinds of the records that the steps wrote."""
        generation = self.medium.current
        reader = Reader(MemoryMedium(durable=self.medium.durable), generation, 512)
        at = self.start if generation == self.generation else 0
        found = set()
        while reader.find(at):
            found.add(reader.kind)
            at = reader.next
        return found


class CutCase(unittest.TestCase):
    def setUp(self):
        collect()

    def check(self, scene, received, medium, where):
        """A start after the cut restores a possible state."""
        stage = Stage(medium)
        found = tables(stage.broker)
        medium.close()
        self.assertTrue(found in scene.may_be(received), (scene.name, where))
        self.assertEqual(broken(stage.broker), [])

    def cut(self, scene, medium, arm):
        """Play the scene, arm() before the steps; the bytes received at the cut, None: no cut."""
        stage = Stage(medium)
        play(stage, scene.before)
        arm()
        try:
            play(stage, scene.steps)
        except (PowerCut, flash.PowerCut):
            return stage.received()
        finally:
            heap.settle()
        return None

    def cut_each_operation(self, cut_at):
        """cut_at(scene, operation) until it says that the scene has no such operation."""
        for name in SCENES:
            scene = Scene(name)
            operation = 1
            while cut_at(scene, operation):
                operation += 1
            self.assertGreater(operation, 1, name)


class TestBytes(CutCase):
    def test_each_scene_writes_its_kind_of_record(self):
        kinds = set()
        for name in SCENES:
            scene = Scene(name)
            self.assertIn(scene.kind, scene.kinds(), name)
            kinds |= scene.kinds()
        self.assertEqual(sorted(kinds), list(range(1, LAST_TYPE + 1)))

    def test_a_cut_after_each_byte(self):
        for name in SCENES:
            scene = Scene(name)
            self.assertGreater(scene.written, 0, name)
            for n in range(0, scene.written, STEP):
                medium = MemoryMedium()
                received = self.cut(scene, medium, lambda: setattr(medium, "power", n))  # noqa: B023
                self.assertIsNotNone(received, name)
                self.check(scene, received, medium.after_the_cut(), n)


def _ioctl(device, op, arg, _):
    return flash.Flash.ioctl(device, op, arg)


class Device(flash.Flash):
    """Unlocks the heap while it allocates."""

    below_littlefs = False  # no exception may pass through that: EIO from the power cut on

    def readblocks(self, block, buf, offset=0):
        return self.call(flash.Flash.readblocks, block, buf, offset)

    def writeblocks(self, block, buf, offset=None):
        return self.call(flash.Flash.writeblocks, block, buf, offset)

    def ioctl(self, op, arg=0):
        return self.call(_ioctl, op, arg, None)

    def call(self, method, a, b, c):
        heap.lift()
        try:
            return method(self, a, b, c)
        except flash.PowerCut:
            if self.below_littlefs:
                return -5
            raise
        finally:
            heap.drop()


class TestFlash(CutCase):
    """An operation of a chip that is cut may leave garbage, which depends on the seed."""

    def test_a_cut_in_each_operation(self):
        for seed in range(SEEDS):
            self.seed = 100 * seed
            self.cut_each_operation(self.cut_at)

    def cut_at(self, scene, operation):
        device = Device(24, 1024, seed=1 + operation + self.seed)
        medium = FlashMedium(device, 9 * 768)
        received = self.cut(scene, medium, lambda: device.cut_at(operation))
        if received is None:
            return False
        device.power_on()
        self.check(scene, received, FlashMedium(device, 9 * 768), (operation, self.seed))
        return True


class OnDisk(CutCase):
    """After each cut disks are checked that it may leave."""

    def tearDown(self):
        media_disk.mount(None)
        super().tearDown()

    def test_a_cut_in_each_operation(self):
        self.cut_each_operation(self.cut_at)

    def cut_at(self, scene, operation):
        disk = media_disk.mount(media_disk.Disk(operation))
        medium = FileMedium("/j/f", 4000, 1 << 20)
        received = self.cut(scene, medium, lambda: disk.cut_at(operation))
        if received is None:
            return False
        for after in disk.after():
            media_disk.mount(after)
            self.check(scene, received, FileMedium("/j/f", 4000, 1 << 20), operation)
        return True


class OnLittlefs(CutCase):
    """A cut in the operations of the chip that littlefs lies on."""

    mounted = False

    def mount(self, device):
        if self.mounted:
            vfs.umount("/j")
        self.mounted = True
        vfs.mount(vfs.VfsLfs2(device, progsize=256, readsize=256), "/j")
        return FileMedium("/j/f", 4000, 1 << 20)

    def tearDown(self):
        vfs.umount("/j")
        super().tearDown()

    def test_a_cut_in_each_operation(self):
        self.blank = Device(32, 1024)
        vfs.VfsLfs2.mkfs(self.blank, progsize=256, readsize=256)
        self.cut_each_operation(self.cut_at)

    def cut_at(self, scene, operation):
        device = Device(32, 1024, seed=operation)
        device.below_littlefs = True
        device.data[:] = self.blank.data
        device.used[:] = self.blank.used
        medium = self.mount(device)
        stage = Stage(medium)
        play(stage, scene.before)
        device.cut_at(operation)
        play(stage, scene.steps)
        medium.close()
        if device.is_on:
            return False
        device.power_on()
        self.check(scene, stage.received(), self.mount(device), operation)
        return True


if MICROPYTHON:

    class TestFiles(OnLittlefs):
        pass
else:

    class TestFiles(OnDisk):
        pass


del OnDisk, OnLittlefs
