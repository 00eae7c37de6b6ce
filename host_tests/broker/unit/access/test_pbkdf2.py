"""PBKDF2 in slices, and HMAC: vectors of RFC 7914, RFC 7677 and RFC 4231."""

import binascii
import unittest

from slotmq.access import pbkdf2
from slotmq.access.pbkdf2 import advance, begin, hmac, same


def key(*args):
    work = begin(*args)
    slices = 0
    while True:
        slices += 1
        found = advance(work)
        if found:
            return found, slices


class TestPbkdf2(unittest.TestCase):
    def test_vectors(self):
        rows = (
            (b"passwd", 1, b"55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc"),
            (b"password", 2, b"ae4d0c95af6b46d32d0adff928f06dd02a303f8ef3c251dfd6e2d85a95474c43"),
            (
                b"password",
                4096,
                b"c5e478d59288c841aa530db6845c4c8d962893a001ce4e11a4963873aa98134a",
            ),
        )
        for password, count, wanted in rows:
            with self.subTest(count=count):
                self.assertEqual(binascii.hexlify(key(password, b"salt", count)[0]), wanted)

    def test_a_long_password_is_hashed_first(self):
        self.assertEqual(binascii.hexlify(key(b"x" * 65, b"salt", 2)[0])[:16], b"b5a1700563b197a9")

    def test_it_takes_slices(self):
        one, many = key(b"p", b"salt", 1)[1], key(b"p", b"salt", 8193)[1]
        self.assertEqual(one, 1)
        self.assertTrue(many >= 16, many)

    def test_few_iterations_have_the_same_key_at_once_and_in_slices(self):
        for password, count in ((b"p", 1), (b"x" * 65, 513), (b"p", 4096)):
            at_once = key(password, b"salt", count)[0]
            pbkdf2.at_once = 0
            self.assertEqual(key(password, b"salt", count)[0], at_once)
            pbkdf2.at_once = 8192

    def test_hmac(self):
        self.assertEqual(
            binascii.hexlify(hmac(b"Jefe", b"what do ya want for nothing?")),
            b"5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        )

    def test_same(self):
        self.assertTrue(same(b"", b"") and same(b"ab", b"ab"))
        self.assertFalse(same(b"ab", b"aB") or same(b"ab", b"a") or same(b"", b"a"))
