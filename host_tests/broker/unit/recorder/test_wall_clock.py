"""A recorder that got the time of day once writes an anchor of it in each segment."""

from struct import unpack

from recorder_case import ANCHOR, RecorderCase, read, records

from slotmq.recorder import wall_clock

NTP, BY_MESSAGE = 4, 2
TICKS = 5  # of the state
MASK = 0x3FFFFFFF
DAY = 86400  # seconds
BEGAN = 1795320988
MOST = 0xFFFFFFFF


class TestWallClock(RecorderCase):
    def at(self, rec, seconds):
        """It is so long after the start."""
        rec.now = seconds * 10
        rec.o[TICKS] = seconds * 1000 & MASK

    def anchors(self, rec):
        """(quality, milliseconds since 1970, error bound) at the head of the next segment."""
        before = rec.segment
        while rec.segment == before:
            self.record(rec, b"x" * 100)
        self.assertTrue(rec.flush())
        found = []
        for kind, quality, _, payload in records(read(rec, rec.segment)):
            if kind == ANCHOR:
                seconds, ms, error = unpack("<IHI", payload)
                found.append((quality, seconds * 1000 + ms, error))
        return found

    def test_each_segment_has_the_true_time(self):
        """For forty days, and after a year without a message; 100 ppm are 53 minutes then."""
        for days in (range(1, 41), [365]):
            rec = self.boot()
            self.at(rec, 1)
            wall_clock.anchor(rec, NTP, BEGAN, 250, 50)
            for day in days:
                self.at(rec, day * DAY)
                passed = day * DAY - 1
                true = (BEGAN + passed) * 1000 + 250
                self.assertEqual(self.anchors(rec), [(NTP, true, 50 + passed // 10)])
            self.clear(rec)

    def test_a_time_that_no_record_can_hold_is_left_out(self):
        for seconds, error in ((BEGAN, MOST), (MOST, 40)):
            rec = self.boot(size=1024, most=8)
            self.at(rec, 0)
            wall_clock.anchor(rec, BY_MESSAGE, seconds, 0, error)
            self.at(rec, 10)
            self.assertEqual(self.anchors(rec), [])
            self.assertTrue(rec.is_open)
            self.clear(rec)

    def test_a_less_exact_time_does_not_replace_a_better_one(self):
        rec = self.boot()
        self.at(rec, 0)
        wall_clock.anchor(rec, NTP, BEGAN, 0, 50)
        self.at(rec, 100)
        wall_clock.anchor(rec, BY_MESSAGE, BEGAN + 7000, 0, 5000)
        self.assertEqual(self.anchors(rec), [(NTP, (BEGAN + 100) * 1000, 60)])
        self.at(rec, DAY)  # by now it may be wrong by 8.69 s
        wall_clock.anchor(rec, BY_MESSAGE, BEGAN + DAY, 0, 5000)
        self.assertEqual(self.anchors(rec), [(BY_MESSAGE, (BEGAN + DAY) * 1000, 5000)])
