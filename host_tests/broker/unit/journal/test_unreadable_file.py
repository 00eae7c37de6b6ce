"""A broker starts although its journal's file cannot be read, wholly or in part."""

from damage_case import LIMIT, SNAPSHOT, TOPICS, DamageCase, FileDamageCase
from media import Ram
from scratch import content

from slotmq.journal.medium_file import FileMedium
from slotmq.platform import ondemand
from slotmq.platform.runtime import MICROPYTHON


class Unreadable(FileMedium):
    """The file system can no longer read its end."""

    def readinto(self, at, buf, n):
        if at + n > 150:
            raise OSError(5)
        return FileMedium.readinto(self, at, buf, n)


class Opened:
    """A file whose read fails."""

    def __init__(self, errno):
        self.errno = errno

    def read(self, n):
        raise OSError(self.errno, "read")

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


class TestReading(FileDamageCase):
    def opened(self, path, mode, **options):
        if path == self.path and mode == "rb" and self.errno:
            return Opened(self.errno)
        return open(path, mode, **options)  # noqa: PTH123

    def start_with(self, errno):
        """A start that gets this error when it reads the file."""
        self.errno = errno
        start = ondemand.take("journal.medium_file_start", 0)
        start.open = self.opened
        try:
            return self.start()
        finally:
            del start.open

    def test_what_stands_before_an_unreadable_part_is_restored(self):
        self.kind = Unreadable
        found = self.start()
        self.assertGreater(found, 0)
        self.assertLess(found, TOPICS)

    def test_a_file_whose_header_cannot_be_read_is_set_aside(self):
        """EIO of a computer's disk, 84 of littlefs."""
        for errno in (5, 84):
            before = content(self.path)
            self.assertEqual(self.start_with(errno), 0)
            self.medium.close()
            self.assertEqual(len(self.reports), 1)
            name = self.reports[0].split(" kept as ")[1]
            self.assertEqual(content(name), before)
            self.assertEqual(self.restart(), 0)

    def test_a_folder_in_its_place_fails_the_start_and_is_not_moved(self):
        """Some systems open a folder, and fail to read it."""
        with self.assertRaises(OSError):
            self.start_with(21)
        self.assertEqual(content(self.path), self.whole)


if MICROPYTHON:
    import vfs

    class TestLittlefs(DamageCase):
        """The chip below the file system rots."""

        def setUp(self):
            super().setUp()
            self.device = Ram(40, 512)
            vfs.VfsLfs2.mkfs(self.device)
            vfs.mount(vfs.VfsLfs2(self.device), "/j")
            self.write_journal()
            vfs.umount("/j")
            self.whole = bytes(self.device.data)

        def open_medium(self):
            return FileMedium("/j/f", SNAPSHOT // 2, LIMIT)

        def test_a_byte_that_rots_in_any_block(self):
            unreadable = 0
            for at in range(0, len(self.whole), 512):
                for byte in (0, 1, 3, 100):
                    self.device.data[:] = self.whole
                    self.device.data[at + byte] ^= 0x55
                    unreadable += self.is_unreadable()
            self.assertGreater(unreadable, 0)

        def is_unreadable(self):
            """Does the start report that the header cannot be read?"""
            try:
                vfs.mount(vfs.VfsLfs2(self.device), "/j")
            except OSError:
                return False  # no file system is left
            try:
                self.assertLessEqual(self.start(), TOPICS)
                self.broker.journal.medium.close()
            finally:
                vfs.umount("/j")
            return "cannot be read" in "".join(self.reports)
