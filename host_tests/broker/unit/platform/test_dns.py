"""A DNS query, and valid and invalid answers to it."""

import unittest

from slotmq.platform import dns

NAME = b"\4pool\3ntp\3org\0"
ASKED = b"\x12\x34\1\0\0\1\0\0\0\0\0\0" + NAME + b"\0\1\0\1"
TO_NAME = b"\xc0\x0c"  # a pointer to where it stands in the question
ADDRESS = b"\0\1\0\1\0\0\0\x3c\0\4\xc0\0\2\7"  # type A, for a minute
OTHER_NAME = b"\0\5\0\1\0\0\0\x3c\0\6\3xyz" + TO_NAME  # CNAME, its end compressed
IP6 = b"\0\x1c\0\1\0\0\0\x3c\0\x10" + bytes(16)
OF_CHAOS = b"\0\1\0\3\0\0\0\x3c\0\4\1\2\3\4"


def answered(*records, number=b"\x12\x34", flags=b"\x81\x80", asked=NAME):
    count = len(records).to_bytes(2, "big")
    head = number + flags + b"\0\1" + count + b"\0\0\0\0"
    return head + asked + b"\0\1\0\1" + b"".join(records)


GOOD = answered(TO_NAME + ADDRESS)


class TestQuestion(unittest.TestCase):
    def test_a_name_becomes_a_query(self):
        self.assertEqual(dns.question("pool.ntp.org", b"\x12\x34"), ASKED)
        self.assertEqual(dns.question("Pool.NTP.org.", b"\x12\x34"), ASKED)

    def test_an_invalid_name_is_refused(self):
        for name in ("", ".", "a..b", ".a", "x" * 64 + ".org"):
            with self.assertRaises(ValueError):
                dns.question(name, b"12")


class Silent:
    """A name server that does not answer."""

    def __init__(self):
        self.asked = 0

    def send(self, packet):
        self.asked += 1

    def recv(self, most):
        raise OSError(11)

    def close(self):
        pass


class TestFind(unittest.TestCase):
    def test_a_query_ends_when_the_clock_moves_back(self):
        """As at an epoch: it is asked three times, and fails, in the time that it always takes."""
        kept = dns._open
        for moves in range(9):
            server = Silent()
            dns._open = lambda _, server=server: server
            asked = {}
            for turn in range(9):
                now = turn * 10 + (0 if turn > moves else 259200000)
                try:
                    self.assertEqual(dns.find(asked, "a.b", "192.0.2.1", now), None)
                except OSError:
                    break
            self.assertTrue(5 <= turn <= 6, (moves, turn))
            self.assertEqual((server.asked, asked), (3, {}))
        dns._open = kept


class TestAnswer(unittest.TestCase):
    def check(self, packet, expected):
        self.assertEqual(dns.answer(packet, ASKED), expected)

    def test_the_address_is_returned(self):
        self.check(GOOD, "192.0.2.7")

    def test_other_records_before_the_address_are_skipped(self):
        self.check(
            answered(TO_NAME + OTHER_NAME, TO_NAME + IP6, TO_NAME + OF_CHAOS, NAME + ADDRESS),
            "192.0.2.7",
        )

    def test_case_does_not_matter(self):
        self.check(answered(TO_NAME + ADDRESS, asked=b"\4POOL\3ntp\3ORG\0"), "192.0.2.7")

    def test_an_answer_to_another_query_is_ignored(self):
        self.check(answered(TO_NAME + ADDRESS, number=b"\x12\x35"), None)
        self.check(answered(TO_NAME + ADDRESS, asked=b"\4poof\3ntp\3org\0"), None)
        self.check(ASKED, None)  # the question itself
        self.check(b"", None)

    def test_without_an_address_the_answer_is_empty(self):
        self.check(answered(flags=b"\x81\x83"), "")
        self.check(answered(TO_NAME + IP6), "")

    def test_a_cut_answer_has_no_address(self):
        for end in range(len(GOOD)):
            self.assertTrue(dns.answer(GOOD[:end], ASKED) in (None, ""))

    def test_a_pointer_to_itself_is_not_followed(self):
        here = len(answered())
        circle = bytes((0xC0 | here >> 8, here & 255))
        self.check(answered(circle + ADDRESS), "192.0.2.7")

    def test_invalid_lengths(self):
        for wrong in (b"\x40", b"\xbf", b"\x3f", TO_NAME + b"\0\5\0\1\0\0\0\0\xff\xff"):
            self.check(answered(wrong), "")
            self.check(answered(wrong + b"\0" * 20), "")

    def test_any_byte_may_be_wrong(self):
        """The result is always None, empty or an address."""
        for at in range(len(GOOD)):
            for value in (0, 1, 0x3F, 0x40, 0x80, 0xC0, 0xFF):
                found = dns.answer(GOOD[:at] + bytes((value,)) + GOOD[at + 1 :], ASKED)
                self.assertTrue(found is None or found == "" or found.count(".") == 3)
