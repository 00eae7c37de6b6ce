"""The recorder's fast path copies messages into its buffer: every size, flag and QoS."""

import unittest
from binascii import crc32
from struct import unpack

from packets import publish

from slotmq.fast import Names
from slotmq.platform.arrays import u16
from slotmq.recorder.writer import add_all, make

BLOCK = 4096
FILL, SEQ, SPACE, THIS, SKIP = 0, 4, 7, 15, 18
KNOWN = 2  # the number of the segment, in what it has defined
CONN, CLIENT = 1, 3


class TestFastPath(unittest.TestCase):
    def setUp(self):
        self.out = bytearray(BLOCK + 400)
        self.topics = Names(8, 512)
        self.sessions = u16(4)
        self.sessions[CONN] = CLIENT
        defined = bytearray(8), bytearray(8)
        self.o, self.buffers = make(self.out, BLOCK, *defined, self.sessions)
        self.defined = defined
        self.o[THIS] = KNOWN
        defined[1][CLIENT] = KNOWN
        for name in (b"t", b"room/1/temperature", b"room/2/temperature"):
            defined[0][self.topics.add(0, name, 0, len(name))] = KNOWN
        self.o[SPACE] = 1 << 20

    def record(self, packets):
        """(type, flags, seq, client, topic, payload) of the records of these packets."""
        start = self.o[FILL] = 0
        taken = add_all(7, CONN, self.o, self.topics, bytearray(packets), 0, len(packets))
        found = []
        while start < self.o[FILL]:
            crc, total, kind, flags, seq, ticks, client, topic = unpack(
                "<IHBBIIHH", self.out[start : start + 20]
            )
            self.assertEqual(crc, crc32(self.out[start + 4 : start + total]))
            self.assertEqual(ticks, 7)
            name = bytearray(64)
            n = self.topics.read(topic, name, 0)
            payload = bytes(self.out[start + 20 : start + total])
            found.append((kind, flags, seq, client, bytes(name[:n]), payload))
            start += total
        self.assertEqual(start, self.o[FILL])
        return taken, found

    def test_payloads_of_every_size(self):
        for n in range(150):
            payload = bytes([(k * 37 + n) & 255 for k in range(n)])
            for qos in (0, 1, 2):
                retain, dup = n % 2 == 1, bool(qos and n % 3 == 0)
                sent = publish("t", payload, qos, qos and 9, retain=retain, dup=dup)
                seq = self.o[SEQ]
                taken, found = self.record(sent + sent)
                flags = qos | 4 * retain | 8 * dup
                wanted = [(2, flags, seq + k, CLIENT, b"t", payload) for k in range(2)]
                self.assertEqual((taken, found), (2 * len(sent), wanted))

    def test_the_length_of_no_properties_is_not_part_of_the_payload(self):
        self.o[SKIP] = 1
        for qos in (0, 1, 2):
            for payload in (b"", b"x", b"y" * 200):
                sent = publish("room/1/temperature", payload, qos, qos and 9, properties=b"")
                taken, found = self.record(sent + sent)
                self.assertEqual(taken, 2 * len(sent))
                self.assertEqual(
                    [each[4:] for each in found], [(b"room/1/temperature", payload)] * 2
                )

    def test_sequence_numbers_in_which_any_number_of_bits_changes(self):
        for bits in range(1, 30):
            self.o[SEQ] = (1 << bits) - 2
            _, found = self.record(publish("t", b"x" * bits) * 4)
            self.assertEqual([each[2] for each in found], [(1 << bits) + k for k in range(-2, 2)])

    def test_topics_that_are_equal_or_differ_early_or_late(self):
        names = ["room/1/temperature", "room/2/temperature", "t", "t", "room/2/temperature"]
        sent = b"".join([publish(name, b"%d" % k) for k, name in enumerate(names)])
        _, found = self.record(sent + b"\xc0\0" + sent)
        self.assertEqual([each[4].decode() for each in found], names + names)

    def test_it_stops_before_a_message_that_it_cannot_record(self):
        one = publish("t", b"x" * 40)
        unknown = publish("unknown", b"x")
        self.assertEqual(self.record(one + unknown + one)[0], len(one))
        self.o[SPACE] = 130  # free space for two in the segment
        taken, found = self.record(one * 3)
        self.assertEqual((taken, len(found), self.o[SPACE]), (2 * len(one), 2, 130 - 2 * 60))
        self.o[SPACE] = 1 << 20
        seq = self.o[SEQ]
        self.defined[1][CLIENT] = 0  # its definition is missing
        self.assertEqual(self.record(one), (0, []))
        self.assertEqual((self.o[SEQ], self.o[SPACE]), (seq, 1 << 20))

    def test_it_stops_before_the_buffer_overflows(self):
        one = publish("t", b"x" * 100)
        taken, found = self.record(one * 60)
        self.assertTrue(BLOCK - 120 < self.o[FILL] <= len(self.out))
        self.assertEqual(taken, len(found) * len(one))
