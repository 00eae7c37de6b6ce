"""A file in which a block of the last batch was not written, though later ones were: zeros are
there, as a computer's file system leaves them when the power goes. That is a torn end."""

import os

from damage_case import HEADER, TOPICS, FileCase
from fakes import World
from packets import PUBACK, ack, publish
from scratch import content

BLOCK = 512


class TestHoles(FileCase):
    def live(self):
        """The last batch has a message of several blocks."""
        super().live()
        self.assertEqual(self.start(), TOPICS)
        self.world = World(self.broker)
        self.client = self.world.client("writer")
        self.begins = self.append(b"first" * 60) + HEADER
        self.ends = self.append(b"x" * 1700) + HEADER
        self.last = self.append(b"") + HEADER
        self.broker.journal.medium.close()

    def append(self, payload):
        """One commit; where it began."""
        medium = self.broker.journal.medium
        at = medium.end
        self.client.send(publish("last", payload, 1, 1, retain=True))
        self.world.turn(9)
        self.assertEqual(self.client.packets(), [ack(PUBACK, 1)])
        return at

    def put(self, data):
        with open(self.path, "wb") as file:  # noqa: PTH123
            file.write(data)

    def with_zeros(self, begin, end):
        return self.whole[:begin] + bytes(end - begin) + self.whole[end:]

    def aside(self):
        """Is there a copy of the one that was damaged? It is there no more."""
        name = f"{self.path}.damaged-2"
        found = content(name)
        if found is not None:
            os.remove(name)  # noqa: PTH107
        return found

    def test_in_the_last_batch(self):
        whole = self.whole[: self.last]
        begin, holes = self.ends, 0
        while begin < len(whole) - 10:
            end = min(begin // BLOCK * BLOCK + BLOCK, len(whole))
            self.put(self.with_zeros(begin, end)[: len(whole)])
            self.assertEqual(self.restart(), TOPICS + 1)
            said = "its end was cut off: what was written last does not count"
            self.assertEqual(self.said, [said])
            self.assertIsNone(self.aside())
            begin, holes = end, holes + 1
        self.assertGreater(holes, 3)

    def test_before_the_last_batch_it_is_damage(self):
        begin = self.ends // BLOCK * BLOCK + BLOCK
        data = self.with_zeros(begin, begin + BLOCK)
        self.put(data)
        self.assertEqual(self.restart(), TOPICS + 1)
        self.assertIn("damaged behind byte", self.said[0])
        self.assertEqual(self.aside(), data)

    def test_other_bytes_there_are_damage(self):
        begin = self.ends // BLOCK * BLOCK + BLOCK
        data = self.whole[:begin] + b"y" * BLOCK + self.whole[begin + BLOCK : self.last]
        self.put(data)
        self.assertEqual(self.restart(), TOPICS + 1)
        self.assertIn("damaged behind byte", self.said[0])
        self.assertEqual(self.aside(), data)


del FileCase
