"""A block of zeros within a file, which a computer's file system may leave where it wrote later
blocks before the power failed. In the last batch that is a torn end, elsewhere damage."""

from damage_case import HEADER, TOPICS, FileDamageCase
from fakes import World
from packets import PUBACK, ack, publish

BLOCK = 512


class TestHoles(FileDamageCase):
    def write_journal(self):
        """The last batch has a message of several blocks."""
        super().write_journal()
        self.assertEqual(self.start(), TOPICS)
        self.world = World(self.broker)
        self.client = self.world.client("writer")
        self.append(b"first" * 60)
        self.begin = self.append(b"x" * 1700) + HEADER
        self.end = self.append(b"") + HEADER
        self.broker.journal.medium.close()

    def append(self, payload):
        """One commit; where it begins."""
        at = self.broker.journal.medium.end
        self.client.send(publish("last", payload, 1, 1, retain=True))
        self.world.turn(9)
        self.assertEqual(self.client.packets(), [ack(PUBACK, 1)])
        return at

    def test_zeros_in_the_last_batch_are_a_torn_end(self):
        whole = self.whole[: self.end]
        begin, holes = self.begin, 0
        while begin < len(whole) - 10:
            end = min(begin // BLOCK * BLOCK + BLOCK, len(whole))
            self.put(whole[:begin] + bytes(end - begin) + whole[end:])
            self.assertEqual(self.restart(), TOPICS + 1)
            report = "its end was cut off: what was written last does not count"
            self.assertEqual(self.reports, [report])
            self.assertIsNone(self.take_copy(2))
            begin, holes = end, holes + 1
        self.assertGreater(holes, 3)

    def test_zeros_before_the_last_batch_and_other_bytes_in_it_are_damage(self):
        begin = self.begin // BLOCK * BLOCK + BLOCK
        end = begin + BLOCK
        zeros = self.whole[:begin] + bytes(BLOCK) + self.whole[end:]
        others = self.whole[:begin] + b"y" * BLOCK + self.whole[end : self.end]
        for data in (zeros, others):
            self.put(data)
            self.assertEqual(self.restart(), TOPICS + 1)
            self.assertIn("damaged behind byte", self.reports[0])
            self.assertEqual(self.take_copy(2), data)
