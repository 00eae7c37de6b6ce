"""A file begins with one COMMIT behind each table: a bit that turns in one of them leaves those
before it."""

import os

from damage_case import HEADER, STEP, FileCase
from fakes import World
from packets import PUBACK, PUBREC, ack, publish, subscribe
from scratch import content

from slotmq.journal.reader import Reader

WHOLE = (2, 1, 2, 3)  # sessions, ids between PUBLISH and PUBREL, deliveries, retained messages
EACH = 3 if STEP == 1 else 7  # bytes
KINDS = [(0, 0, 0, 0), (2, 0, 0, 0), (2, 1, 0, 0), (2, 1, 2, 0), WHOLE]


class TestTables(FileCase):
    def live(self):
        """A row of each table, in a generation that a start has written."""
        self.start()
        world = World(self.broker)
        reader = world.client("reader", clean=False)
        reader.send(subscribe(1, "t", 1))
        world.turn(3)
        reader.send(b"\xe0\0")  # DISCONNECT
        world.turn(3)
        sender = world.client("sender", clean=False)
        sender.send(publish("x", b"held", 2, 7))
        for n in range(2):
            sender.send(publish("t", b"%d" % n, 1, n + 1))
        for n in range(3):
            sender.send(publish(f"r/{n}", b"%d" % n, 1, n + 3, retain=True))
        world.turn(9)
        answers = [ack(PUBREC, 7)] + [ack(PUBACK, n + 1) for n in range(5)]
        self.assertEqual(sender.packets(), answers)
        self.broker.journal.medium.close()
        self.assertEqual(self.there(), WHOLE)

    def there(self):
        """A start; how many rows of each table it has."""
        self.start()
        broker = self.broker
        found = (broker.sessions.names.count(), sum(broker.sessions.id_count))
        found += (broker.deliveries.count[0], broker.retained.names.count())
        broker.journal.medium.close()
        return found

    def damaged(self, data):
        """What a start has of these bytes; it says so, and keeps a copy."""
        with open(self.path, "wb") as file:  # noqa: PTH123
            file.write(data)
        found = self.there()
        self.assertEqual(len(self.said), 1)
        name = self.said[0][self.said[0].index("kept as ") + 8 :]
        self.assertEqual(content(name), data)
        os.remove(name)  # noqa: PTH107
        lost = [n for n in range(4) if found[n] != WHOLE[n]]
        self.assertEqual(lost, list(range(4))[4 - len(lost) :])  # what stands behind it
        self.assertEqual([found[n] for n in lost], [0] * len(lost))
        return found

    def test_a_bit_that_turns(self):
        seen = set()
        for at in range(HEADER, len(self.whole), EACH):
            byte = bytes([self.whole[at] ^ 4])
            seen.add(self.damaged(self.whole[:at] + byte + self.whole[at + 1 :]))
        self.assertEqual(sorted(seen), KINDS)

    def test_the_end_is_missing(self):
        """No power cut does that to what was synced before the file had its name."""
        size = len(self.whole)
        seen = {self.damaged(self.whole[:n]) for n in range(HEADER, size, EACH)}
        self.assertEqual(sorted(seen), KINDS)

    def test_between_two_records(self):
        medium = self.medium()
        reader = Reader(medium, medium.generations()[0], 512)
        at, places = 0, []
        while at < medium.end:
            self.assertTrue(reader.find(at))
            places.append(at)
            at = reader.next
        medium.close()
        seen = {self.damaged(self.whole[: HEADER + at]) for at in places[1:]}
        self.assertEqual(sorted(seen), KINDS)
