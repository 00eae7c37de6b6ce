"""Power cuts at every byte that a medium in raw flash writes, and within each erase."""

import unittest

from media import Flash, garbage, goes_on, looked_at, three_generations

from slotmq.journal.medium_flash import FlashMedium

BLOCKS, SIZE = 8, 1024
SNAPSHOT = 2 * (SIZE - 256)


def on(data, kind=FlashMedium):
    return kind(Flash(BLOCKS, SIZE, data), SNAPSHOT)


def ored(one, other):
    return bytes([one[i] | other[i] for i in range(len(one))])


class Early(FlashMedium):
    """Marks a generation as whole before it is."""

    def begin(self, generation):
        FlashMedium.begin(self, generation)
        self.put_header(0)

    def switch(self):
        self.sync()
        self.opened, self.first = self.ident, self.base
        self.length = max(1, -(-self.end // self.data))
        self.space = self.capacity


class TestCuts(unittest.TestCase):
    def lived(self, kind=FlashMedium):
        device = Flash(BLOCKS, SIZE)
        device.log = []
        three_generations(kind(device, SNAPSHOT), device.note)
        return device.log

    def cut(self, log, look):
        """Repeat what was done; look(data, may_be, n) checks each state in between."""
        data = bytearray(b"\xff" * (BLOCKS * SIZE))
        may_be = None
        for at, done in enumerate(log):
            if len(done) == 1:
                may_be = done[0]
            elif done[1] is None:
                self.cut_erase(data, done[0], look, may_be, at)
            else:
                self.cut_program(data, done[0], done[1], look, may_be, at)

    def cut_erase(self, data, at, look, may_be, seed):
        before = bytes(data[at : at + SIZE])
        noise = garbage(SIZE, seed)
        for n, state in enumerate(
            (
                before[: SIZE // 2] + b"\xff" * (SIZE // 2),
                b"\xff" * 300 + before[300:],
                ored(before, noise),
                bytes(SIZE),
                noise,
                before[:128] + noise[128:],
                b"\xff" * SIZE,
            )
        ):
            data[at : at + SIZE] = state
            look(data, may_be, n)

    def cut_program(self, data, at, page, look, may_be, seed):
        look(data, may_be, 0)
        data[at : at + 256] = garbage(256, seed)
        look(data, may_be, 1)
        data[at : at + 256] = ored(page, garbage(256, seed + 1))
        look(data, may_be, 2)
        data[at : at + 256] = b"\xff" * 256
        for i in range(256):
            data[at + i] = page[i]
            look(data, may_be, 3 + i)

    def test_what_was_synced_survives(self):
        def look(data, may_be, n):
            looked_at(self, on_same(data), may_be)

        on_same = self.reader()
        self.cut(self.lived(), look)

    def reader(self):
        # One medium serves all checks, which are many.
        medium = on(b"")

        def on_same(data):
            medium.device.data = data
            return medium

        return on_same

    def test_after_a_cut_it_is_appended_to_and_compacted(self):
        def look(data, may_be, n):
            if n in (0, 1, 2, 4, 5, 27, 258):
                for resumes in (True, False):
                    device = Flash(BLOCKS, SIZE, data)
                    goes_on(self, lambda: FlashMedium(device, SNAPSHOT), may_be, resumes)  # noqa: B023

        self.cut(self.lived(), look)

    def test_a_medium_that_writes_its_header_too_early_fails_this_test(self):
        def look(data, may_be, n):
            looked_at(self, on(data), may_be)

        with self.assertRaises(AssertionError):
            self.cut(self.lived(Early), look)
