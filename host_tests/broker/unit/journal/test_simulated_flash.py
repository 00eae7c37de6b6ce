"""The simulated flash has exactly these faults, which tests of power cuts rely on."""

import unittest

from slotmq_tools.sim.flash import Flash, Misused, PowerCut

BLOCK, PAGE = 512, 64
SEEDS = 200


def filled(n, byte=0xA5):
    return bytes((byte,)) * n


class TestFlash(unittest.TestCase):
    def flash(self, seed=0):
        return Flash(4, BLOCK, PAGE, seed)

    def read(self, flash, block=0, n=BLOCK, offset=0):
        buf = bytearray(n)
        flash.readblocks(block, buf, offset)
        return bytes(buf)

    def test_it_is_a_block_device(self):
        flash = self.flash()
        self.assertEqual(flash.ioctl(4, 0), 4)
        self.assertEqual(flash.ioctl(5, 0), BLOCK)
        self.assertEqual(self.read(flash, 3), filled(BLOCK, 0xFF))
        flash.writeblocks(1, b"abc", 70)
        self.assertEqual(self.read(flash, 1, 5, 69), b"\xffabc\xff")
        self.assertEqual(flash.ioctl(6, 1), 0)
        self.assertEqual(self.read(flash, 1), filled(BLOCK, 0xFF))
        self.assertEqual(flash.ioctl(3, 0), 0)

    def test_without_an_offset_the_block_is_erased_first(self):
        flash = self.flash()
        for byte in (1, 2):
            flash.writeblocks(2, filled(BLOCK, byte))
            self.assertEqual(self.read(flash, 2), filled(BLOCK, byte))
        self.assertEqual(flash.erased, [0, 0, 2, 0])
        self.assertRaises(Misused, lambda: flash.writeblocks(2, b"abc"))

    def test_it_counts_operations_and_bytes(self):
        flash = self.flash()
        flash.writeblocks(0, filled(10), 0)
        flash.writeblocks(0, filled(20), PAGE)
        flash.ioctl(6, 0)
        self.read(flash, 0, 7)
        self.assertEqual((flash.programs, flash.erasures, flash.reads), (2, 1, 1))
        self.assertEqual((flash.programmed_bytes, flash.read_bytes), (30, 7))
        self.assertEqual(flash.operations(), 3)

    def test_a_page_is_programmed_once(self):
        flash = self.flash()
        flash.writeblocks(0, b"a", PAGE - 1)
        self.assertRaises(Misused, lambda: flash.writeblocks(0, b"b", 0))
        self.assertRaises(Misused, lambda: flash.writeblocks(0, filled(PAGE), 10))
        flash.writeblocks(0, b"b", PAGE)
        flash.ioctl(6, 0)
        flash.writeblocks(0, b"b", 0)

    def test_an_access_beyond_its_end_is_refused(self):
        flash = self.flash()
        self.assertRaises(Misused, lambda: flash.writeblocks(3, filled(2), BLOCK - 1))
        self.assertRaises(Misused, lambda: flash.ioctl(6, 4))
        self.assertRaises(Misused, lambda: self.read(flash, 4, 1))

    def test_from_a_power_cut_on_every_operation_fails(self):
        flash = self.flash()
        flash.cut_at(2)
        flash.writeblocks(0, b"a", 0)
        self.assertRaises(PowerCut, lambda: flash.writeblocks(0, b"b", PAGE))
        self.assertRaises(PowerCut, lambda: flash.writeblocks(1, b"b", 0))
        self.assertRaises(PowerCut, lambda: flash.ioctl(6, 1))
        self.assertRaises(PowerCut, lambda: self.read(flash))
        flash.power_on()
        self.assertEqual(self.read(flash, 0, 1), b"a")
        self.assertEqual(self.read(flash, 1), filled(BLOCK, 0xFF))

    def cut(self, seed, call):
        flash = self.flash(seed)
        flash.writeblocks(0, filled(BLOCK, 0x5A), 0)
        flash.cut_at(1)
        self.assertRaises(PowerCut, lambda: call(flash))
        flash.power_on()
        return flash

    def test_a_cut_program_leaves_a_prefix_and_perhaps_garbage(self):
        lengths = {}
        garbage = 0
        for seed in range(SEEDS):
            flash = self.cut(seed, lambda flash: flash.writeblocks(1, filled(3 * PAGE), PAGE))
            self.assertEqual(self.read(flash), filled(BLOCK, 0x5A))
            found = self.read(flash, 1)
            self.assertEqual(found[:PAGE] + found[4 * PAGE :], filled(BLOCK - 3 * PAGE, 0xFF))
            done = 0
            while done < 3 * PAGE and found[PAGE + done] == 0xA5:
                done += 1
            lengths[done] = True
            rest = found[PAGE + done : 4 * PAGE]
            for byte in rest:  # only from 1 to 0, where that was intended
                self.assertEqual(byte & 0xA5, 0xA5)
            garbage += rest != filled(len(rest), 0xFF)
        self.assertGreater(len(lengths), SEEDS // 4)
        self.assertTrue(SEEDS // 4 < garbage < SEEDS)

    def test_a_page_that_a_cut_program_has_changed_must_be_erased(self):
        refused = 0
        for seed in range(SEEDS):
            flash = self.cut(seed, lambda flash: flash.writeblocks(1, filled(PAGE), 0))
            touched = self.read(flash, 1, PAGE) != filled(PAGE, 0xFF)
            try:
                flash.writeblocks(1, b"a", 0)
            except Misused:
                refused += 1
                self.assertTrue(touched)
        self.assertGreater(refused, SEEDS // 2)

    def test_a_cut_erase_may_leave_garbage_and_must_be_repeated(self):
        garbage = 0
        for seed in range(SEEDS):
            flash = self.cut(seed, lambda flash: flash.ioctl(6, 0))
            found = self.read(flash)
            garbage += len(found.replace(b"\xff", b"").replace(b"\x5a", b"")) > 0
            for byte in found:
                self.assertEqual(byte & 0x5A, 0x5A)  # only from 0 to 1
            self.assertRaises(Misused, lambda flash=flash: flash.writeblocks(0, b"a", 0))
            flash.ioctl(6, 0)
            self.assertEqual(self.read(flash), filled(BLOCK, 0xFF))
        self.assertTrue(SEEDS // 4 < garbage < SEEDS)

    def test_the_same_seed_gives_the_same_result(self):
        def found(seed):
            flash = self.cut(seed, lambda flash: flash.writeblocks(1, filled(300), 0))
            return bytes(flash.data)

        self.assertEqual(found(5), found(5))
        self.assertTrue(found(5) != found(6))

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
