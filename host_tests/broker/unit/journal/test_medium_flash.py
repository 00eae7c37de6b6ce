"""A journal's medium in raw flash: its generations, its free space, and rotted headers."""

from media import Flash, Life, MediumCase, fill, goes_on, looked_at, read, text

from slotmq.journal.medium_flash import FlashMedium

BLOCKS, SIZE = 8, 1024
DATA = SIZE - 256  # bytes of the journal in a block
SNAPSHOT = 2 * DATA
SECOND = 128  # the second copy of a header


class FlashCase(MediumCase):
    def setUp(self):
        self.device = Flash(BLOCKS, SIZE)
        self.medium = FlashMedium(self.device, SNAPSHOT)

    def reopened(self):
        self.medium = FlashMedium(self.device, SNAPSHOT)
        return self.medium

    def two(self):
        """Generations 1 and 2, of two blocks each."""
        life = Life(self.medium)
        life.compact(DATA)
        life.append(100)
        first = life.synced
        life.compact(DATA + 200)
        return first, life.synced


class TestGenerations(FlashCase):
    def test_an_empty_region_has_no_generation(self):
        self.assertEqual(self.medium.generations(), [])
        self.assertIsNone(self.medium.set_aside(0))
        self.device.data[:] = bytes(BLOCKS * SIZE)
        self.assertEqual(self.reopened().generations(), [])
        self.assertEqual(self.medium.set_aside(0), "")  # something was there, which has no name

    def test_what_was_written_can_be_read(self):
        first, second = self.two()
        self.assertEqual(self.reopened().generations(), [2, 1])
        for generation, wanted in ((1, first), (2, second)):
            self.medium.open(generation)
            self.assertEqual(self.medium.end, 2 * DATA)
            self.assertEqual(read(self.medium, 9999), wanted + b"\xff" * (2 * DATA - len(wanted)))
        self.assertEqual(self.medium.readinto(2 * DATA, bytearray(10), 10), 0)
        self.assertEqual(self.medium.readinto(2 * DATA + 5, bytearray(10), 10), 0)

    def test_a_sync_pads_to_a_page_and_no_further(self):
        medium = self.medium
        medium.begin(1)
        for appended, end in ((1, 256), (255, 512), (256, 768), (0, 768), (257, 1280)):
            medium.append(text(0, appended), 0, appended)
            for _ in range(2):
                medium.sync()
                self.assertEqual(medium.end, end)

    def test_the_current_generation_can_be_read_while_the_next_is_written(self):
        _, second = self.two()
        self.medium.begin(3)
        fill(self.medium, bytearray(), 500)
        self.assertEqual(read(self.medium, len(second)), second)
        self.medium.resume(len(second))
        self.medium.append(text(9, 256), 0, 256)
        self.assertEqual(read(self.medium, len(second) + 256), second + text(9, 256))

    def test_an_empty_generation(self):
        self.medium.begin(7)
        self.medium.switch()
        self.medium.begin(8)  # which does not change it
        self.assertEqual(self.reopened().generations(), [7])
        self.medium.open(7)
        self.assertEqual(read(self.medium, DATA), b"\xff" * DATA)
        self.medium.resume(0)
        life = Life(self.medium)
        life.generation = 7
        life.append(900)
        looked_at(self, self.reopened(), [(7, life.synced)])

    def test_an_unfinished_generation_leaves_no_blocks_to_the_next_of_its_number(self):
        self.two()
        for _ in range(2):  # a new start each time
            medium = self.reopened()
            medium.open(medium.generations()[0])
            medium.begin(3)
            fill(medium, bytearray(), 2 * DATA)
            medium.sync()
        medium = self.reopened()
        medium.open(medium.generations()[0])
        medium.begin(3)
        medium.append(b"abc", 0, 3)
        medium.switch()
        self.reopened().generations()
        self.medium.open(3)
        self.assertEqual(self.medium.end, DATA)

    def test_a_generation_that_is_set_aside_is_gone(self):
        first, _ = self.two()
        medium = self.reopened()
        medium.generations()
        medium.open(2)
        self.assertIsNone(medium.set_aside(2))
        medium.open(1)
        self.assertEqual(read(medium, len(first)), first)
        self.assertEqual(self.reopened().generations(), [1])
        self.medium.set_aside(1)
        self.assertEqual(self.reopened().generations(), [])

    def test_a_closed_medium_takes_nothing(self):
        self.two()
        self.medium.close()
        self.check_closed()


class TestSpace(FlashCase):
    def test_a_new_generation_always_has_space(self):
        """Wherever in the ring the current one lies, and however full it is."""
        medium = self.medium
        self.assertEqual(medium.capacity, 6 * DATA)
        medium.begin(1)
        medium.switch()
        for generation in range(2, 20):
            size = 1 + 97 * generation % 700
            end = medium.end
            while True:
                try:
                    medium.append(text(0, size), 0, size)
                except OSError as error:
                    self.assertEqual(error.errno, 28)
                    self.assertEqual(medium.end, end)
                    break
                medium.sync()
                end = medium.end
            self.assertGreater(end + size, medium.capacity)
            medium.begin(generation)
            medium.append(text(0, SNAPSHOT), 0, SNAPSHOT)
            self.assertEqual(self.refused(medium.append, b"a", 0, 1), 28)
            medium.switch()
            self.assertEqual(medium.end, SNAPSHOT)

    def test_a_full_medium_can_be_read(self):
        life = Life(self.medium)
        life.compact(10)
        life.append(6 * DATA - 256)
        self.assertEqual(self.refused(self.medium.append, b"a", 0, 1), 28)
        looked_at(self, self.reopened(), [(1, life.synced)])

    def test_a_resumed_generation_has_the_same_space(self):
        _, second = self.two()
        looked_at(self, self.reopened(), [(2, second)])
        self.medium.resume(len(second))
        left = self.medium.capacity - len(second)
        self.assertEqual(self.refused(self.medium.append, bytes(left + 1), 0, left + 1), 28)
        self.medium.append(bytes(left), 0, left)

    def test_an_unfinished_generation_takes_none(self):
        life = Life(self.medium)
        life.compact(10)
        for _ in range(20):
            life.compact(4 * DATA, give_up=True)
        life.append(5 * DATA)
        looked_at(self, self.reopened(), [(1, life.synced)])

    def test_after_an_error_it_takes_nothing_until_the_next_generation(self):
        life = Life(self.medium)
        life.compact(10)
        life.append(600)
        write = self.device.writeblocks
        self.device.writeblocks = lambda block, buf, off: 5
        self.assertEqual(self.refused(self.medium.append, bytes(600), 0, 600), 5)
        self.device.writeblocks = write
        self.check_closed()
        life.compact(700)
        looked_at(self, self.reopened(), [(2, life.synced)])


class TestRot(FlashCase):
    def flip(self, block, *places):
        for at in places:
            self.device.data[block * SIZE + at] ^= 1 << at % 8

    def test_of_one_copy_of_a_header_has_no_effect_and_of_both_loses_the_generation(self):
        first, second = self.two()
        for at in range(24):
            for places, expected in (
                ((at,), (2, second)),
                ((SECOND + at,), (2, second)),
                ((at, SECOND + at), (1, first)),
            ):
                self.flip(2, *places)
                looked_at(self, self.reopened(), [expected])
                self.flip(2, *places)

    def test_of_a_header_in_the_middle_loses_the_generation(self):
        first, _ = self.two()
        self.medium.append(text(0, 900), 0, 900)
        self.medium.sync()
        self.assertEqual(self.reopened().generations(), [2, 1])
        self.flip(3, 0, SECOND)
        looked_at(self, self.reopened(), [(1, first)])

    def test_after_that_the_medium_is_appended_to_and_compacted(self):
        first, _ = self.two()
        self.flip(2, 0, SECOND)
        goes_on(self, self.reopened, [(1, first)], True)
