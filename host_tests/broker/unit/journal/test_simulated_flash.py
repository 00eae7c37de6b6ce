"""The simulated flash has exactly these faults, which tests of power cuts rely on."""

import unittest

from slotmq_tools.sim.flash import Flash, Misused, PowerCut

BLOCK, PAGE = 512, 64
SEEDS = 200


def filled(n, byte=0xA5):
    return bytes((byte,)) * n


def read(flash, block=0, n=BLOCK, offset=0):
    buf = bytearray(n)
    flash.readblocks(block, buf, offset)
    return bytes(buf)


class TestFlash(unittest.TestCase):
    def flash(self, seed=0):
        return Flash(4, BLOCK, PAGE, seed)

    def test_it_is_a_block_device_that_counts(self):
        flash = self.flash()
        self.assertEqual((flash.ioctl(4, 0), flash.ioctl(5, 0), flash.ioctl(3, 0)), (4, BLOCK, 0))
        self.assertEqual(read(flash, 3), filled(BLOCK, 0xFF))
        flash.writeblocks(1, b"abc", 70)
        self.assertEqual(read(flash, 1, 5, 69), b"\xffabc\xff")
        self.assertEqual(flash.ioctl(6, 1), 0)
        self.assertEqual(read(flash, 1), filled(BLOCK, 0xFF))
        self.assertEqual((flash.programs, flash.erasures, flash.reads), (1, 1, 3))
        self.assertEqual((flash.programmed_bytes, flash.read_bytes), (3, 2 * BLOCK + 5))
        self.assertEqual(flash.operations(), 2)
        for byte in (1, 2):  # without an offset the block is erased first
            flash.writeblocks(2, filled(BLOCK, byte))
            self.assertEqual(read(flash, 2), filled(BLOCK, byte))
        self.assertEqual(flash.erased, [0, 1, 2, 0])

    def test_what_no_chip_allows_is_refused(self):
        flash = self.flash()
        flash.writeblocks(0, b"a", PAGE - 1)
        for call in (
            lambda: flash.writeblocks(0, b"b", 0),  # a page is programmed once
            lambda: flash.writeblocks(0, filled(PAGE), 10),
            lambda: flash.writeblocks(2, b"abc"),
            lambda: flash.writeblocks(3, filled(2), BLOCK - 1),
            lambda: flash.ioctl(6, 4),
            lambda: read(flash, 4, 1),
        ):
            self.assertRaises(Misused, call)
        flash.writeblocks(0, b"b", PAGE)
        flash.ioctl(6, 0)
        flash.writeblocks(0, b"b", 0)

    def test_from_a_power_cut_on_every_operation_fails(self):
        flash = self.flash()
        flash.cut_at(2)
        flash.writeblocks(0, b"a", 0)
        for call in (
            lambda: flash.writeblocks(0, b"b", PAGE),
            lambda: flash.writeblocks(1, b"b", 0),
            lambda: flash.ioctl(6, 1),
            lambda: read(flash),
        ):
            self.assertRaises(PowerCut, call)
        flash.power_on()
        self.assertEqual(read(flash, 0, 1), b"a")
        self.assertEqual(read(flash, 1), filled(BLOCK, 0xFF))

    def cut(self, seed, call):
        flash = self.flash(seed)
        flash.writeblocks(0, filled(BLOCK, 0x5A), 0)
        flash.cut_at(1)
        self.assertRaises(PowerCut, lambda: call(flash))
        flash.power_on()
        return flash

    def test_a_cut_program_leaves_a_prefix_and_perhaps_garbage(self):
        lengths, garbage, refused = set(), 0, 0
        for seed in range(SEEDS):
            flash = self.cut(seed, lambda flash: flash.writeblocks(1, filled(3 * PAGE), PAGE))
            self.assertEqual(read(flash), filled(BLOCK, 0x5A))
            found = read(flash, 1)
            self.assertEqual(found[:PAGE] + found[4 * PAGE :], filled(BLOCK - 3 * PAGE, 0xFF))
            rest = found[PAGE : 4 * PAGE].lstrip(b"\xa5")
            lengths.add(len(rest))
            self.assertEqual([byte & 0xA5 for byte in rest], [0xA5] * len(rest))  # from 1 to 0
            garbage += rest != filled(len(rest), 0xFF)
            try:
                flash.writeblocks(1, b"a", PAGE)
            except Misused:  # a page that has changed must be erased
                refused += 1
                self.assertTrue(found[PAGE : 2 * PAGE] != filled(PAGE, 0xFF))
        self.assertGreater(len(lengths), SEEDS // 4)
        self.assertTrue(SEEDS // 4 < garbage < SEEDS)
        self.assertGreater(refused, SEEDS // 2)

    def test_a_cut_erase_may_leave_garbage_and_must_be_repeated(self):
        garbage = 0
        for seed in range(SEEDS):
            flash = self.cut(seed, lambda flash: flash.ioctl(6, 0))
            found = read(flash)
            garbage += len(found.replace(b"\xff", b"").replace(b"\x5a", b"")) > 0
            self.assertEqual([byte & 0x5A for byte in found], [0x5A] * BLOCK)  # from 0 to 1
            self.assertRaises(Misused, lambda flash=flash: flash.writeblocks(0, b"a", 0))
            flash.ioctl(6, 0)
            self.assertEqual(read(flash), filled(BLOCK, 0xFF))
        self.assertTrue(SEEDS // 4 < garbage < SEEDS)

    def test_the_same_seed_gives_the_same_result(self):
        found = [
            bytes(self.cut(seed, lambda flash: flash.writeblocks(1, filled(300), 0)).data)
            for seed in (5, 5, 6)
        ]
        self.assertTrue(found[0] == found[1] != found[2])

    def test_rot_flips_bits_and_tells_which(self):
        flash = self.flash(3)
        flash.writeblocks(0, filled(BLOCK), 0)
        before = bytes(flash.data)
        places = flash.rot(5)
        after = bytearray(flash.data)
        for block, offset, bit in places:
            after[block * BLOCK + offset] ^= 1 << bit
        self.assertEqual(bytes(after), before)
        self.assertEqual(len(places), 5)
