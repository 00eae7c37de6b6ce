"""The time that a recorder was told once, told anew in each segment; on both runtimes."""

from struct import unpack

from recorder_case import ANCHOR, RecorderCase, records

from slotmq.recorder import wall_clock

NTP, BY_MESSAGE = 4, 2
TICKS = 5  # of the state
MASK = 0x3FFFFFFF
DAY = 86400  # seconds
BEGAN = 1795320988
MOST = 0xFFFFFFFF


class TestRecordTime(RecorderCase):
    def at(self, rec, seconds):
        """So long after the start."""
        rec.now = seconds * 10
        rec.o[TICKS] = seconds * 1000 & MASK

    def told(self, rec):
        """(quality, milliseconds since 1970, error bound) at the head of the next segment."""
        before = rec.segment
        while rec.segment == before:
            self.say(rec, b"x" * 100)
        self.assertTrue(rec.flush())
        found = []
        for kind, quality, _, payload in records(self.read(rec, rec.segment)):
            if kind == ANCHOR:
                seconds, ms, error = unpack("<IHI", payload)
                found.append((quality, seconds * 1000 + ms, error))
        return found

    def test_for_forty_days_each_segment_has_the_true_time(self):
        rec = self.boot()
        self.at(rec, 1)
        wall_clock.anchor(rec, NTP, BEGAN, 250, 50)
        for day in range(1, 41):
            self.at(rec, day * DAY)
            passed = day * DAY - 1
            true = (BEGAN + passed) * 1000 + 250
            self.assertEqual(self.told(rec), [(NTP, true, 50 + passed // 10)])

    def test_it_is_right_after_a_year_in_which_nothing_passed(self):
        rec = self.boot()
        self.at(rec, 0)
        wall_clock.anchor(rec, NTP, BEGAN, 0, 50)
        year = 365 * DAY
        self.at(rec, year)
        ((_, ms, error),) = self.told(rec)
        self.assertEqual(ms, (BEGAN + year) * 1000)
        self.assertEqual(error, 50 + year // 10)  # of 100 ppm 53 minutes

    def test_what_a_record_cannot_say_is_not_told(self):
        for seconds, error in ((BEGAN, MOST), (MOST, 40)):
            rec = self.boot(size=1024, most=8)
            self.at(rec, 0)
            wall_clock.anchor(rec, BY_MESSAGE, seconds, 0, error)
            self.at(rec, 10)
            self.assertEqual(self.told(rec), [])
            self.assertTrue(rec.is_open)
            self.empty(rec)

    def test_a_worse_time_does_not_take_the_place_of_a_better_one(self):
        rec = self.boot()
        self.at(rec, 0)
        wall_clock.anchor(rec, NTP, BEGAN, 0, 50)
        self.at(rec, 100)
        wall_clock.anchor(rec, BY_MESSAGE, BEGAN + 7000, 0, 5000)
        self.assertEqual(self.told(rec), [(NTP, (BEGAN + 100) * 1000, 60)])
        self.at(rec, DAY)  # what is known may be wrong by 8.69 s now
        wall_clock.anchor(rec, BY_MESSAGE, BEGAN + DAY, 0, 5000)
        self.assertEqual(self.told(rec), [(BY_MESSAGE, (BEGAN + DAY) * 1000, 5000)])
