"""A journal's file begins with one COMMIT behind each table: if a bit in one table is wrong, the
tables before it are restored."""

import os

from damage_case import HEADER, STEP, FileDamageCase
from fakes import World
from packets import DISCONNECT, PUBACK, PUBREC, ack, publish, subscribe
from scratch import content

from slotmq.journal.reader import Reader

WHOLE = (2, 1, 2, 3)  # sessions, ids between PUBLISH and PUBREL, deliveries, retained messages
EACH = 3 if STEP == 1 else 7  # bytes
RESTORED = [(0, 0, 0, 0), (2, 0, 0, 0), (2, 1, 0, 0), (2, 1, 2, 0), WHOLE]


class TestTables(FileDamageCase):
    def write_journal(self):
        """A row of each table, in a generation that a start has written."""
        self.start()
        world = World(self.broker)
        reader = world.client("reader", clean=False)
        reader.send(subscribe(1, "t", 1))
        world.turn(3)
        reader.send(DISCONNECT)
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
        self.assertEqual(self.restored(), WHOLE)

    def restored(self):
        """The number of rows of each table after a start."""
        self.start()
        broker = self.broker
        found = (broker.sessions.names.count(), sum(broker.sessions.id_count))
        found += (broker.deliveries.count[0], broker.retained.names.count())
        broker.journal.medium.close()
        return found

    def check(self, journals):
        """Of each damaged journal the tables before the damage are restored; a copy is kept."""
        seen = set()
        for data in journals:
            self.put(data)
            found = self.restored()
            self.assertEqual(len(self.reports), 1)
            name = self.reports[0][self.reports[0].index("kept as ") + 8 :]
            self.assertEqual(content(name), data)
            os.remove(name)  # noqa: PTH107
            lost = [n for n in range(4) if found[n] != WHOLE[n]]
            self.assertEqual(lost, list(range(4))[4 - len(lost) :])  # all behind the damage
            self.assertEqual([found[n] for n in lost], [0] * len(lost))
            seen.add(found)
        self.assertEqual(sorted(seen), RESTORED)

    def test_a_wrong_bit(self):
        def flipped(at):
            return self.whole[:at] + bytes([self.whole[at] ^ 4]) + self.whole[at + 1 :]

        self.check(flipped(at) for at in range(HEADER, len(self.whole), EACH))

    def test_a_missing_end(self):
        """No power cut does that: the file was synced before it got its name."""
        self.check(self.whole[:n] for n in range(HEADER, len(self.whole), EACH))

    def test_a_missing_end_between_two_records(self):
        medium = self.open_medium()
        reader = Reader(medium, medium.generations()[0], 512)
        at, records = 0, []
        while at < medium.end:
            self.assertTrue(reader.find(at))
            records.append(at)
            at = reader.next
        medium.close()
        self.check(self.whole[: HEADER + at] for at in records[1:])
