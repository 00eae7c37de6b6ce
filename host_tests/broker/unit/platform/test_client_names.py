"""The name that a client's certificate says, of bytes that a CA has signed and nobody expects."""

import unittest

from slotmq.platform.x509 import common_name

DER = bytes.fromhex(
    "308201133081b9a003020102020101300a06082a8648ce3d04030230133111300f06035504030c086e6f626f"
    "64795859301e170d3236303130313030303030305a170d3336303130313030303030305a30133111300f0603"
    "5504030c086e6f626f647958593059301306072a8648ce3d020106082a8648ce3d030107034200042e3c2fdf"
    "fb4f8a83e7857eb9bf03ff4eb7114c344cd35d9d160496123ef0e0ecb0e09ab44866443eefb379b10070f115"
    "92e45216ab031d85229f37ecb6a9b265300a06082a8648ce3d040302034900304602210089ed0a8506974fbc"
    "61f9f3482e8ecb0e89b0308d94357bbe9e99aa4ac0af1612022100cbdb19c21f1876039c74cceac8959d392e"
    "26e77d149f166915dad54f5695e24e"
)
NAME = b"\x0c\x08nobodyXY"
# What becomes of its common name, and what that says
NAMES = (
    (b"\x0c\x08wilhelm1", "wilhelm1"),
    (b"\x13\x08wilhelm2", "wilhelm2"),
    (b"\x14\x08J\xfcrgen12", "J\u00fcrgen12"),
    (b"\x1e\x08\0J\0\xfc\0r\x20\xac", "J\u00fcr\u20ac"),
    (b"\x1c\x08\0\0\0J\0\1\xf6\0", "J\U0001f600"),
    (b"\x0c\x08\xff\xfe\xc0\x80abcd", ""),
    (b"\x1e\x08\0J\xd8\x3d\0r\0g", ""),  # half of a surrogate pair
    (b"\x1e\x07\0J\xd8\x3d\0r\0g", ""),
    (b"\x1c\x08\0\0\0J\7\0\0\0", ""),  # beyond Unicode
    (b"\x03\x08\0alicexy", ""),
    (b"\x30\x08\x0c\x06alicex", ""),
    (b"\x0c\x7fnobodyXY", None),
    (b"\x0c\xffnobodyXY", None),
)


class TestCommonName(unittest.TestCase):
    def test_each_kind_of_text(self):
        self.assertEqual(common_name(DER), "nobodyXY")
        self.assertEqual(common_name(b""), "")
        at = DER.rindex(NAME)  # that of the subject; the issuer's is before it
        for name, wanted in NAMES:
            with self.subTest(name=name):
                found = common_name(DER[:at] + name + DER[at + len(NAME) :])
                if wanted is not None:
                    self.assertEqual(found, wanted)

    def test_any_bytes(self):
        """It says a text, whatever is changed or cut off."""
        number = 12345
        for n in range(3000):
            der = bytearray(DER)
            for _ in range(1 + n % 3):
                number = (number * 1103515 + 12345) & 0x3FFFFFFF
                der[(number >> 8) % len(der)] = number >> 3 & 255
            if n % 4 == 0:
                der = der[: number % len(der)]
            found = common_name(bytes(der))
            self.assertTrue(isinstance(found, str) and len(found.encode()) < len(DER))
