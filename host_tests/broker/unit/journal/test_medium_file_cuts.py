"""Power cuts while a medium in a file is written: on MicroPython on littlefs, on CPython on a disk
that has what was synced and perhaps some of the rest.
"""

import unittest

from fakes import lock
from media import Life, Quiet, Ram, garbage, goes_on, looked_at, three_generations

from slotmq.journal import location
from slotmq.journal.medium_file import FileMedium
from slotmq.platform import heap
from slotmq.platform.runtime import MICROPYTHON
from slotmq_tools.sim.flash import PowerCut

if MICROPYTHON:
    import vfs
else:
    import media_disk

SNAPSHOT, LIMIT = 2000, 8000


class Early(FileMedium):
    """Does not wait until its bytes are durable."""

    def sync(self):
        pass


class Spared(FileMedium):
    """Has reserved space, as with a journal."""

    def switch(self):
        FileMedium.switch(self)
        self.spare(1200)


class OfAComputer(Spared):
    """So large that its files have a buffer on MicroPython, too."""

    def __init__(self, *args):
        super().__init__(*args)
        self.most = 1 << 20


def medium():
    return FileMedium("/j/f", SNAPSHOT, LIMIT)


def look_at(case, may_be):
    made = medium()
    try:
        looked_at(case, made, may_be)
    finally:
        made.close()


class OnDisk:
    """The power fails in every operation, and disks that this may leave are checked."""

    def tearDown(self):
        media_disk.mount(None)

    def cut(self, look, kind=Spared):
        for operation in range(1, 1000):
            self.may_be = [(0, b"")]
            disk = self.mount(media_disk.Disk(operation))
            disk.cut_at(operation)
            try:
                three_generations(kind("/j/f", SNAPSHOT, LIMIT), self.note)
                break
            except PowerCut:
                pass
            for after in disk.after():
                look(self.mount(after), self.may_be)
        return operation

    def note(self, may_be):
        self.may_be = may_be

    def mount(self, disk):
        return media_disk.mount(disk)

    def test_what_was_synced_survives_where_files_have_a_buffer(self):
        self.cut(lambda _, may_be: look_at(self, may_be), OfAComputer)

    def test_what_was_synced_survives(self):
        operations = self.cut(lambda _, may_be: look_at(self, may_be))
        self.assertGreater(operations, 50)

    def test_after_a_cut_it_is_appended_to_and_compacted(self):
        self.cut(lambda _, may_be: goes_on(self, medium, may_be, False))

    def test_a_medium_that_does_not_sync_fails_this_test(self):
        with self.assertRaises(AssertionError):
            self.cut(lambda _, may_be: look_at(self, may_be), Early)

    def test_a_file_that_was_set_aside_survives(self):
        disk = self.mount(media_disk.Disk())
        made = medium()
        Life(made).compact(100)
        self.assertEqual(made.set_aside(1), "/j/f.damaged-1")
        for after in disk.after():
            self.assertEqual(list(after.names), ["/j/f.damaged-1"])


class OnLittlefs:
    """The power fails at every operation of the block device, and within it."""

    BLOCKS, SIZE = 48, 512

    mounted = False

    def tearDown(self):
        self.umount()

    def umount(self):
        if self.mounted:
            vfs.umount("/j")
        self.mounted = False

    def mount(self, data):
        self.umount()
        self.mounted = True
        device = Ram(self.BLOCKS, self.SIZE, data)
        vfs.mount(vfs.VfsLfs2(device), "/j")
        return device

    def formatted(self):
        device = Ram(self.BLOCKS, self.SIZE)
        vfs.VfsLfs2.mkfs(device)
        return device.data

    def cut(self, look, kind=FileMedium, step=1):
        data = bytearray(self.formatted())
        device = self.mount(data)
        device.log = [([(0, b"")],)]
        made = kind("/j/f", SNAPSHOT, LIMIT)
        three_generations(made, device.note)
        log, states = device.log, 0
        made.close()
        for seed, done in enumerate(log):
            if len(done) == 1:
                may_be = done[0]
                continue
            for state in self.states(data, done[0], done[1], seed, step):
                data[done[0] : done[0] + len(state)] = state
                self.mount(data)
                look(may_be)
                states += 1
        return states

    def states(self, data, at, written, seed, step):
        # What a cut within the operation may leave, and last what the operation does.
        if written is not None:
            yield garbage(len(written), seed)
            yield data[at : at + len(written)]
            for n in range(1, len(written), step):
                yield written[:n]
            yield written
        else:
            before = data[at : at + self.SIZE]
            yield garbage(self.SIZE, seed)
            yield before[:200] + b"\xff" * (self.SIZE - 200)
            yield b"\xff" * self.SIZE

    def test_what_was_synced_survives(self):
        states = self.cut(lambda may_be: look_at(self, may_be))
        self.assertGreater(states, 3000)

    def test_after_a_cut_it_is_appended_to_and_compacted(self):
        self.cut(lambda may_be: goes_on(self, medium, may_be, True), step=50)

    def test_a_medium_that_does_not_sync_fails_this_test(self):
        with self.assertRaises(AssertionError):
            self.cut(lambda may_be: look_at(self, may_be), Early)

    def test_littlefs_survives_power_cuts_and_fat_does_not(self):
        self.mount(self.formatted())
        self.assertEqual(location.promises("/j/f"), ("VfsLfs2", True))
        self.assertEqual(location.promises("/jj/f"), ("VfsPosix", None))
        self.umount()
        device = Ram(64, 512)
        vfs.VfsFat.mkfs(device)
        self.mounted = True
        vfs.mount(vfs.VfsFat(device), "/j")
        self.assertEqual(location.promises("/j/f"), ("VfsFat", False))

    def test_what_a_synced_append_of_100_bytes_costs(self):
        """On 64 blocks of 4 KB, as on a Pico: these figures are in FORMAT.md."""
        device = Ram(64, 4096)
        vfs.VfsLfs2.mkfs(device, progsize=256)
        self.mounted = True
        vfs.mount(vfs.VfsLfs2(device, progsize=256), "/j")
        made = FileMedium("/j/f", 8000, 100000)
        made.begin(1)
        made.switch()
        before = device.programmed, sum(device.erases)
        for _ in range(400):
            made.append(bytes(100), 0, 100)
            made.sync()
        made.close()
        self.assertLess(abs((device.programmed - before[0]) // 400 - 2500), 100)
        self.assertLess(abs((sum(device.erases) - before[1]) * 4096 // 400 - 4450), 100)

    def test_nothing_is_allocated(self):
        device = Quiet(self.BLOCKS, self.SIZE, self.formatted())
        self.mounted = True
        vfs.mount(vfs.VfsLfs2(device), "/j")
        made, record = medium(), bytes(100)
        made.begin(1)
        made.switch()
        lock()
        try:
            for _ in range(20):
                made.append(record, 0, 100)
                made.append(record, 50, 50)
                made.sync()
        finally:
            heap.unlock()
        made.close()

    def test_a_full_file_system_keeps_what_was_synced(self):
        device = self.mount(self.formatted())
        made = FileMedium("/j/f", SNAPSHOT, 99999)
        life = Life(made)
        life.compact(100)
        with self.assertRaises(OSError) as caught:
            while True:
                life.append(300)
        self.assertEqual(caught.exception.errno, 28)
        for call in (made.sync, lambda: made.append(b"a", 0, 1)):
            with self.assertRaises(OSError):
                call()
        made.close()
        self.assertGreater(len(life.synced), 15000)
        self.mount(device.data)
        look_at(self, [(1, life.synced)])


if MICROPYTHON:

    class TestCuts(OnLittlefs, unittest.TestCase):
        pass
else:

    class TestCuts(OnDisk, unittest.TestCase):
        pass
