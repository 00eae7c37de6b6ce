"""The property section of MQTT 5.0: every property in every packet, whole and damaged."""

import unittest

from packets import packet, text

from slotmq.v5.properties import make, read_length, scan

MALFORMED, PROTOCOL_ERROR = -0x81, -0x82
MORE = 19  # values[column + MORE]: where a number stands, how long a text is

PACKETS = {
    "connect": 1,
    "will": 2,
    "publish": 4,
    "ack": 8,
    "subscribe": 16,
    "unsubscribe": 32,
    "disconnect": 64,
    "auth": 128,
}
# Every property [5.0, 2.2.2.2]: its identifier, a value, what that is, and the packets in
# which a client may send it. None of the last where only a server does.
PROPERTIES = (
    (0x01, b"\1", 1, "will publish"),
    (0x02, b"\0\1\2\3", 0x10203, "will publish"),
    (0x03, text("text/plain"), b"text/plain", "will publish"),
    (0x08, text("answer/to"), b"answer/to", "will publish"),
    (0x09, text(b"\0\xff"), b"\0\xff", "will publish"),
    (0x0B, b"\x80\1", 128, "subscribe publish"),  # in PUBLISH v5/publish.py refuses it
    (0x11, b"\0\0\1\0", 256, "connect disconnect"),
    (0x12, text("made-up"), None, ""),
    (0x13, b"\0\x3c", None, ""),
    (0x15, text("SCRAM"), b"SCRAM", "connect auth"),
    (0x16, text(b"\xff\0"), b"\xff\0", "connect auth"),
    (0x17, b"\0", 0, "connect"),
    (0x18, b"\0\0\0\5", 5, "will"),
    (0x19, b"\1", 1, "connect"),
    (0x1A, text("info"), None, ""),
    (0x1C, text("elsewhere"), None, ""),
    (0x1F, text("since"), b"since", "ack disconnect auth"),
    (0x21, b"\1\2", 0x102, "connect"),
    (0x22, b"\xff\xff", 65535, "connect"),
    (0x23, b"\0\1", 1, "publish"),
    (0x24, b"\1", None, ""),
    (0x25, b"\1", None, ""),
    (0x26, text("name") + text("value"), None, " ".join(PACKETS)),
    (0x27, b"\0\1\0\0", 65536, "connect"),
    (0x28, b"\1", None, ""),
    (0x29, b"\1", None, ""),
    (0x2A, b"\1", None, ""),
)


def section(properties):
    return packet(0, properties)[1:]


class TestScan(unittest.TestCase):
    def setUp(self):
        self.values = make()

    def scan(self, where, properties, before=b"\xaa\xaa\xaa", behind=b"\xbb\xbb"):
        """Of a section amid other bytes: -> the offset past it from its begin, or below 0."""
        whole = section(properties)
        buf = bytearray(before + whole + behind)
        end = len(before) + len(whole)
        at = scan(buf, len(before), end, PACKETS[where], self.values)
        self.assertTrue(at < 0 or at == end)
        return at if at < 0 else at - len(before)

    def found(self, count):
        bits = [column for column in range(MORE) if self.values[0] >> column & 1]
        self.assertEqual(len(bits), count)
        return bits

    def test_an_empty_section(self):
        for where in PACKETS:
            self.assertEqual(self.scan(where, b""), 1)
            self.assertEqual(self.values[0], 0)

    def test_every_property_in_every_packet(self):
        for name, value, _, legal in PROPERTIES:
            one = bytes((name,)) + value
            for where in PACKETS:
                with self.subTest(name=name, where=where):
                    wanted = 1 + len(one) if where in legal.split() else MALFORMED
                    self.assertEqual(self.scan(where, one), wanted)

    def test_the_value_of_each_property(self):
        for name, value, wanted, legal in PROPERTIES:
            if wanted is None:
                continue
            with self.subTest(name=name):
                self.scan(legal.split()[0], bytes((name,)) + value)
                (column,) = self.found(1)
                at, more = self.values[column], self.values[column + MORE]
                if isinstance(wanted, bytes):
                    self.assertEqual((at, more), (3 + 1 + 1 + 2, len(wanted)))
                else:
                    self.assertEqual((at, more), (wanted, 3 + 1))

    def test_user_properties_are_not_noted(self):
        self.scan("publish", b"\x26" + text("") + text(""))
        self.found(0)

    def test_all_properties_of_a_packet_in_any_order(self):
        for where in PACKETS:
            mine = [bytes((row[0],)) + row[1] for row in PROPERTIES if where in row[3].split()]
            for turn in range(len(mine)):
                with self.subTest(where=where, turn=turn):
                    whole = b"".join(mine[turn:] + mine[:turn])
                    self.assertEqual(self.scan(where, whole), len(section(whole)))
                    self.found(len(mine) - 1)  # without the user property

    def test_a_repeated_property(self):
        for name, value, _, legal in PROPERTIES:
            one = bytes((name,)) + value
            for where in legal.split():
                with self.subTest(name=name, where=where):
                    wanted = 1 + 2 * len(one) if name == 0x26 else PROTOCOL_ERROR
                    self.assertEqual(self.scan(where, one * 2), wanted)

    def test_a_property_cut_by_the_section(self):
        for name, value, _, legal in PROPERTIES:
            one = bytes((name,)) + value
            for where in legal.split():
                for n in range(1, len(one)):
                    with self.subTest(name=name, where=where, n=n):
                        self.assertEqual(self.scan(where, one[:n]), MALFORMED)

    def test_a_section_cut_by_the_packet(self):
        for name, value, _, legal in PROPERTIES:
            for where in legal.split():
                buf = bytearray(section(bytes((name,)) + value))
                for end in range(len(buf)):
                    with self.subTest(name=name, where=where, end=end):
                        at = scan(buf, 0, end, PACKETS[where], self.values)
                        self.assertEqual(at, MALFORMED)

    def test_a_length_in_more_bytes_than_needed(self):
        for length in (b"\x80\0", b"\x80\x80\0", b"\xff\xff\xff\xff\1", b"\xff\xff\xff\xff"):
            buf = bytearray(length + bytes(9))
            self.assertEqual(scan(buf, 0, len(buf), 4, self.values), MALFORMED)

    def test_five_thousand_user_properties(self):
        one = b"\x26" + text("") + text("v")
        whole = section(one * 5000 + b"\1\1")
        buf = bytearray(whole)
        self.assertEqual(scan(buf, 0, len(buf), PACKETS["publish"], self.values), len(buf))
        self.found(1)
        buf[-3] = 0xFF  # the last one's value is no UTF-8
        self.assertEqual(scan(buf, 0, len(buf), PACKETS["publish"], self.values), MALFORMED)

    def test_large_numbers_become_the_largest_small_integer(self):
        for value, wanted in (
            (b"\x3f\xff\xff\xff", 0x3FFFFFFF),
            (b"\x40\0\0\0", 0x3FFFFFFF),
            (b"\xff\xff\xff\xff", 0x3FFFFFFF),
        ):
            self.assertEqual(self.scan("connect", b"\x11" + value), 6)
            (column,) = self.found(1)
            self.assertEqual(self.values[column], wanted)


LENGTHS = ((0, b"\0"), (127, b"\x7f"), (128, b"\x80\1"), (16383, b"\xff\x7f"))
LENGTHS += ((16384, b"\x80\x80\1"), (2097151, b"\xff\xff\x7f"), (2097152, b"\x80\x80\x80\1"))
LENGTHS += ((268435455, b"\xff\xff\xff\x7f"),)
NO_LENGTHS = (b"", b"\x80", b"\xff\xff", b"\xff\xff\xff", b"\xff\xff\xff\xff", b"\x80\0")
NO_LENGTHS += (b"\xff\x80\0", b"\x80\x80\x80\x80\1")


class TestReadLength(unittest.TestCase):
    def test_the_shortest_form_is_read(self):
        for number, form in LENGTHS:
            buf = b"\xaa" + form + b"\xaa"
            self.assertEqual(read_length(buf, 1, 1 + len(form)), number)

    def test_other_forms_are_refused(self):
        for form in NO_LENGTHS:
            with self.subTest(form=form):
                self.assertEqual(read_length(form, 0, len(form)), -1)
