"""The power is cut after every byte, and in every operation of a chip or a disk, that a record
of each kind takes: what is there then is one of the states that the clients may know of."""

import gc
import sys
import unittest

from invariants import broken
from memory_medium import MemoryMedium, PowerCut
from row_kinds import COMMIT, SCENES, Stage, picture, play

from slotmq.journal.medium_file import FileMedium
from slotmq.journal.medium_flash import FlashMedium
from slotmq.platform import heap
from slotmq.platform.runtime import MICROPYTHON
from slotmq_tools.sim import flash

if MICROPYTHON:
    import vfs
else:
    import media_disk

IS_CPYTHON = sys.implementation.name == "cpython"
STEP = 1 if IS_CPYTHON else 23
SEEDS = 4 if IS_CPYTHON else 1


class Known:
    """A scene without a cut: the states that it goes through, and what clients heard in each."""

    def __init__(self, before, steps):
        self.medium = MemoryMedium()
        self.stage = Stage(self.medium)
        play(self.stage, before)
        self.written = self.medium.written_bytes()
        self.generation = self.medium.current
        self.start = len(self.medium.kept[self.generation])
        self.states = []
        self.note()
        play(self.stage, steps, self.note)
        self.written = self.medium.written_bytes() - self.written

    def note(self):
        after = Stage(self.medium.after_the_cut()).broker
        self.states.append((self.stage.heard(), picture(after)))

    def may_be(self, heard):
        """The states that there may be when clients have heard so much."""
        return [state for said, state in self.states if said >= heard]

    def kinds(self):
        """How often each kind of record was written in the steps."""
        medium = self.medium
        data = medium.kept[medium.current]
        at = self.start if medium.current == self.generation else 0
        found = {}
        while at < len(data):
            kind, size, shift = data[at], 0, 0
            while True:
                at += 1
                size |= (data[at] & 127) << shift
                shift += 7
                if data[at] < 128:
                    break
            at += 1 + size + 4
            found[kind] = found.get(kind, 0) + 1
        return found


class Case(unittest.TestCase):
    def setUp(self):
        gc.collect()
        getattr(gc, "freeze", gc.collect)()  # a start collects garbage many times

    def check(self, known, heard, medium, where):
        """What is there after a cut, and that life goes on with it."""
        stage = Stage(medium)
        found = picture(stage.broker)
        medium.close()
        self.assertTrue(found in known.may_be(heard), where)
        self.assertEqual(broken(stage.broker), [])

    def cut(self, known, before, steps, medium, arm):
        """Plays with the power armed; how many bytes were heard when it went, or None."""
        stage = Stage(medium)
        play(stage, before)
        arm()
        try:
            play(stage, steps)
        except (PowerCut, flash.PowerCut, Cut):
            return stage.heard()
        finally:
            heap.settle()
        return None


class Cut(Exception):
    pass


if not MICROPYTHON:
    Cut = media_disk.Cut


class TestBytes(Case):
    """After every byte that a sync brings to the medium."""

    def test_every_kind_is_written_by_its_scene(self):
        total = {}
        for name, (before, steps, kind) in SCENES.items():
            found = Known(before, steps).kinds()
            self.assertTrue(found.get(kind, 0) > 0, name)
            for each, count in found.items():
                total[each] = total.get(each, 0) + count
        self.assertEqual(sorted(total), list(range(1, COMMIT + 1)))

    def test_cut_after_each(self):
        for name, (before, steps, _) in SCENES.items():
            known = Known(before, steps)
            self.assertTrue(known.written > 0, name)
            cuts = 0
            for n in range(0, known.written, STEP):
                medium = MemoryMedium()
                heard = self.cut(known, before, steps, medium, lambda: setattr(medium, "power", n))  # noqa: B023
                self.assertTrue(heard is not None, name)
                self.check(known, heard, medium.after_the_cut(), (name, n))
                cuts += 1
            self.assertEqual(cuts, -(-known.written // STEP))


class Device(flash.Flash):
    """Lifts the loop's lock, as what allocates must."""

    def readblocks(self, block, buf, offset=0):
        heap.lift()
        flash.Flash.readblocks(self, block, buf, offset)
        heap.drop()

    def writeblocks(self, block, buf, offset=None):
        heap.lift()
        flash.Flash.writeblocks(self, block, buf, offset)
        heap.drop()

    def ioctl(self, op, arg=0):
        heap.lift()
        done = flash.Flash.ioctl(self, op, arg)
        heap.drop()
        return done


class TestFlash(Case):
    """In every operation of a chip, which leaves anything of what it was doing."""

    def test_cut_in_each(self):
        cuts = 0
        for name, (before, steps, _) in SCENES.items():
            known = Known(before, steps)
            for seed in range(SEEDS):
                operation = 1
                while self.cut_at(known, before, steps, name, operation, seed):
                    operation += 1
                self.assertTrue(operation > 1, name)
                cuts += operation - 1
        self.assertTrue(cuts >= len(SCENES) * SEEDS)

    def cut_at(self, known, before, steps, name, operation, seed):
        device = Device(24, 1024, seed=1 + operation + 100 * seed)
        medium = FlashMedium(device, 9 * 768)
        heard = self.cut(known, before, steps, medium, lambda: device.cut_at(operation))
        if heard is None:
            return False
        device.power_on()
        self.check(known, heard, FlashMedium(device, 9 * 768), (name, operation, seed))
        return True


class OnDisk(Case):
    """In every operation on the files of a computer, with every disk that it may leave."""

    def tearDown(self):
        media_disk.mount(None)
        super().tearDown()

    def test_cut_in_each(self):
        for name, (before, steps, _) in SCENES.items():
            known = Known(before, steps)
            operation = 0
            while self.cut_at(known, before, steps, name, operation):
                operation += 1
            self.assertTrue(operation > 1, name)

    def cut_at(self, known, before, steps, name, operation):
        disk = media_disk.mount(media_disk.Disk(1 << 30))
        medium = FileMedium("/j/f", 4000, 1 << 20)
        heard = self.cut(known, before, steps, medium, lambda: setattr(disk, "left", operation))
        if heard is None:
            return False
        for after in disk.after():
            media_disk.mount(after)
            self.check(known, heard, FileMedium("/j/f", 4000, 1 << 20), (name, operation))
        return True


class Failing(Device):
    """Fails when its power goes, and from then on: littlefs cannot be left by an exception."""

    def readblocks(self, block, buf, offset=0):
        return self.did(flash.Flash.readblocks, block, buf, offset)

    def writeblocks(self, block, buf, offset=None):
        return self.did(flash.Flash.writeblocks, block, buf, offset)

    def ioctl(self, op, arg=0):
        return self.did(flash.Flash.ioctl, op, arg, None)

    def did(self, call, a, b, c):
        heap.lift()
        try:
            return call(self, a, b) if c is None else call(self, a, b, c)
        except flash.PowerCut:
            return -5
        finally:
            heap.drop()


class OnLittlefs(Case):
    """In every operation of the chip that littlefs lies on."""

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

    def test_cut_in_each(self):
        blank = Device(32, 1024)
        vfs.VfsLfs2.mkfs(blank, progsize=256, readsize=256)
        for name, (before, steps, _) in SCENES.items():
            known = Known(before, steps)
            operation = 1
            while self.cut_at(known, before, steps, name, operation, blank):
                operation += 1
            self.assertTrue(operation > 1, name)

    def cut_at(self, known, before, steps, name, operation, blank):
        device = Failing(32, 1024, seed=operation)
        device.data[:] = blank.data
        device.used[:] = blank.used
        medium = self.mount(device)
        stage = Stage(medium)
        play(stage, before)
        device.cut_at(operation)
        play(stage, steps)
        medium.close()
        if device.is_on:
            return False
        heard = stage.heard()
        device.power_on()
        self.check(known, heard, self.mount(device), (name, operation))
        return True


if MICROPYTHON:

    class TestFiles(OnLittlefs):
        pass
else:

    class TestFiles(OnDisk):
        pass


del Case, OnDisk, OnLittlefs
