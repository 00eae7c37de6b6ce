"""A journal's file that cannot be read, wholly or in part, never keeps a broker from its start."""

from damage_case import LIMIT, SNAPSHOT, TOPICS, Case, FileCase
from full_media import Lifting
from scratch import content

from slotmq.journal.medium_file import FileMedium
from slotmq.platform import ondemand
from slotmq.platform.runtime import MICROPYTHON


class Unreadable(FileMedium):
    """A part of it the file system cannot read any more."""

    def readinto(self, at, buf, n):
        if at + n > 150:
            raise OSError(5)
        return FileMedium.readinto(self, at, buf, n)


class Opened:
    """A file of which nothing can be read: that ends with this error."""

    def __init__(self, errno):
        self.errno = errno

    def read(self, n):
        raise OSError(self.errno, "read")

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


class TestReading(FileCase):
    def opened(self, path, mode, **options):
        if path == self.path and mode == "rb" and self.errno:
            return Opened(self.errno)
        return open(path, mode, **options)  # noqa: PTH123

    def start_with(self, errno):
        """Whoever reads the file gets this error."""
        self.errno = errno
        start = ondemand.take("journal.medium_file_start", 0)
        start.open = self.opened
        try:
            return self.start()
        finally:
            del start.open

    def test_what_cannot_be_read_is_not_there(self):
        self.kind = Unreadable
        found = self.start()
        self.assertGreater(found, 0)
        self.assertLess(found, TOPICS)

    def test_a_header_that_cannot_be_read(self):
        """EIO of a host's disk, 84 of a littlefs: the file is kept, and the broker starts."""
        for errno in (5, 84):
            before = content(self.path)
            self.assertEqual(self.start_with(errno), 0)
            self.made.close()
            self.assertEqual(len(self.said), 1)
            name = self.said[0].split(" kept as ")[1]
            self.assertEqual(content(name), before)
            self.assertEqual(self.restart(), 0)

    def test_a_folder_ends_the_start(self):
        """Nothing is moved away that is no file: on some it opens, and cannot be read."""
        with self.assertRaises(OSError):
            self.start_with(21)
        self.assertEqual(content(self.path), self.whole)


if MICROPYTHON:
    import vfs

    class TestLittlefs(Case):
        """A chip that rots below the file system: no start ends with that."""

        def setUp(self):
            super().setUp()
            self.device = Lifting(40, 512)
            vfs.VfsLfs2.mkfs(self.device)
            vfs.mount(vfs.VfsLfs2(self.device), "/j")
            self.live()
            vfs.umount("/j")
            self.whole = bytes(self.device.data)

        def medium(self):
            return FileMedium("/j/f", SNAPSHOT // 2, LIMIT)

        def test_a_byte_that_rots_in_any_block(self):
            moved = 0
            for at in range(0, len(self.whole), 512):
                for byte in (0, 1, 3, 100):
                    self.device.data[:] = self.whole
                    self.device.data[at + byte] ^= 0x55
                    moved += self.mounted()
            self.assertGreater(moved, 0)

        def mounted(self):
            """Does the start say that the header cannot be read?"""
            try:
                vfs.mount(vfs.VfsLfs2(self.device), "/j")
            except OSError:
                return 0  # no file system is left
            try:
                self.assertLessEqual(self.start(), TOPICS)
                self.broker.journal.medium.close()
            finally:
                vfs.umount("/j")
            return "cannot be read" in "".join(self.said)


del Case, FileCase
