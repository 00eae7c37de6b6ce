"""The recorder's ring of segments: power cuts, full rings, long messages, large numbers."""

from struct import unpack

from recorder_case import EVENT, GAP, RecorderCase, read, records

from slotmq.recorder import files


class TestRing(RecorderCase):
    def test_messages_longer_than_the_buffer(self):
        rec = self.boot(size=8192)
        wanted = [b"x" * n for n in (0, 1, 255, 256, 300, 2000)]
        for payload in wanted:
            self.record(rec, payload)
        self.assertTrue(rec.flush())
        self.assertEqual(self.payloads(read(rec, 0)), wanted)

    def test_a_power_cut_at_every_byte_leaves_a_prefix(self):
        rec = self.boot(size=1024)
        wanted = [b"message %d" % n for n in range(8)]
        for payload in wanted:
            self.record(rec, payload)
        rec.flush()
        data = read(rec, 0)
        files.close(rec)
        for cut in range(len(data)):
            with open(files.path(rec, 0), "wb") as file:  # noqa: PTH123
                file.write(data[:cut])
            again = self.boot(2)
            again.flush()
            found = self.payloads(data[:cut])
            self.assertEqual(found, wanted[: len(found)])
            # nothing is written behind the torn record; a file without a header is replaced
            self.assertEqual(files.look(again), [0, 1] if cut >= 32 else [0])
            if cut >= 32:
                self.assertEqual(read(again, 0), data[:cut])
            self.assertEqual(records(read(again, again.newest))[0][0], EVENT)
            self.clear(again)

    def test_the_oldest_segment_is_removed_and_recorded_as_a_gap(self):
        rec = self.boot(size=1024, most=3)
        for n in range(150):
            self.record(rec, b"%03d" % n)
        rec.flush()
        there = files.look(rec)
        self.assertEqual(len(there), 3)
        kind, reason, _, payload = records(read(rec, there[-1]))[0]
        self.assertEqual((kind, reason), (GAP, 1))
        boot, first, count, segment = unpack("<IIII", payload)
        self.assertEqual((boot, segment), (1, there[0] - 1))
        last = records(read(rec, there[0]))
        self.assertEqual(first + count, last[0][2])

    def test_each_removed_segment_is_recorded_as_one_gap(self):
        rec = self.boot(size=1024, most=3)
        gaps = []
        for n in range(400):
            self.record(rec, b"%03d" % n)
            for segment in files.look(rec)[:-1]:
                for kind, _, seq, payload in records(read(rec, segment)):
                    if kind == GAP and (seq, payload) not in gaps:
                        gaps.append((seq, payload))
        self.assertTrue(len(gaps) > 5)
        self.assertEqual(len({payload for _, payload in gaps}), len(gaps))

    def test_a_full_ring_that_stops_ends_with_a_gap(self):
        rec = self.boot(size=1024, most=2, stops=True)
        for n in range(150):
            self.record(rec, b"%03d" % n)
        found = records(read(rec, 1))
        self.assertEqual(found[-1][:2], (GAP, 2))
        self.assertEqual(unpack("<IIII", found[-1][3])[1], found[-1][2] + 1)
        self.assertEqual(files.look(rec), [0, 1])

    def test_a_segment_is_never_longer_than_its_size(self):
        """The next segment needs the definitions again."""
        topic = b"t" * 200
        for size in range(500, 1025, 5):
            rec = self.boot(size=1024, most=16)
            long = b"x" * size
            wanted = [b"0", long, long, b"1", long, long, b"2"]
            for payload in wanted:
                self.record(rec, payload, topic)
            rec.flush()
            data = [read(rec, segment) for segment in files.look(rec)]
            self.assertTrue(max(len(each) for each in data) <= 1024, size)
            found = [self.payloads(each) for each in data]
            self.assertTrue(all(found))  # no segment is without a message
            found = [payload for each in found for payload in each]
            if size > 1024 - 134 - 220 - 20:  # its topic, and its header
                found = [payload for payload in found if payload != long]
                wanted = wanted[::3]
            self.assertEqual(found, wanted)
            self.clear(rec)

    def test_a_message_too_long_for_the_length_field_is_left_out(self):
        rec = self.boot(size=1 << 20)
        for n in (10, 65493, 10, 65494, 65515, 65516, 70000, 10):
            self.record(rec, b"x" * n)
        self.assertTrue(rec.flush())
        found = [len(payload) for payload in self.payloads(read(rec, 0))]
        self.assertEqual(found, [10, 65493, 10, 10])

    def test_a_buffer_with_more_than_two_blocks_is_written(self):
        rec = self.boot(size=65536)
        self.assertTrue(len(rec.out) > 2 * rec.o[1])  # topics may be as long as a block
        wanted = []
        for n in range(1, 400):
            wanted.append(b"x" * (n * 37 % 270))
            self.record(rec, wanted[-1], b"t" * (n % 3 + 1))
            if not n % 3:
                self.assertTrue(rec.flush())
        self.assertTrue(rec.flush())
        self.assertEqual(self.payloads(read(rec, 0)), wanted)


LAST_SEQ = 0x3FF00000
SEQ = 4


class TestLastSequenceNumber(RecorderCase):
    """Beyond it a board would need heap for the numbers."""

    def stored_boot(self):
        with open(self.folder + "ring", "rb") as file:  # noqa: PTH123
            return unpack("<I", file.read()[8:12])[0]

    def test_the_next_segment_has_the_next_boot_number(self):
        rec = self.boot(boot=7, size=1024, most=64)
        rec.o[SEQ] = LAST_SEQ - 3
        for n in range(60):
            self.record(rec, b"%d" % n)
        rec.flush()
        there = files.look(rec)
        boots = [files.header(rec, segment)[0] for segment in there]
        self.assertEqual(sorted(set(boots)), [7, 8])
        self.assertEqual(self.stored_boot(), 8)
        first = there[boots.index(8)]
        self.assertEqual(files.header(rec, first), (8, 0))
        every = [r for segment in there for r in records(read(rec, segment))]
        self.assertFalse(GAP in [r[0] for r in every])
        found = [data for segment in there for data in self.payloads(read(rec, segment))]
        self.assertEqual(found, [b"%d" % n for n in range(60)])
        numbers = [r[2] for segment in there[first:] for r in records(read(rec, segment))]
        self.assertEqual(numbers, list(range(len(numbers))))

    def test_a_full_ring_records_one_gap_for_each_boot_number(self):
        rec = self.boot(boot=7, size=1024, most=2, stops=True)
        for n in range(150):
            self.record(rec, b"%03d" % n)
        lost_from = rec.lost_from
        rec.o[SEQ] = LAST_SEQ + 5
        for _ in range(3):  # looks for space
            rec.now += 700
            self.record(rec, b"lost")
        self.assertEqual((rec.boot, self.stored_boot()), (8, 8))
        self.assertTrue(rec.o[SEQ] < 10)
        files.remove(rec, 0)
        rec.now += 700
        lost = rec.o[SEQ]
        self.record(rec, b"again")
        self.assertTrue(rec.flush())
        gaps = []
        for kind, reason, _, payload in records(read(rec, rec.segment)):
            if kind == GAP:
                boot, first, count = unpack("<III", payload[:12])
                gaps.append((reason, boot, first, count))
        self.assertEqual(gaps[0][:3], (2, 7, lost_from))
        self.assertTrue(LAST_SEQ + 5 <= gaps[0][2] + gaps[0][3] <= LAST_SEQ + 6)
        self.assertEqual(gaps[1:], [(2, 8, 0, lost)])
        self.assertEqual(self.payloads(read(rec, rec.segment)), [b"again"])
