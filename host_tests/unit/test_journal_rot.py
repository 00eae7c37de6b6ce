"""A file begins with one COMMIT behind each table: a bit that turns in one of them leaves those
before it."""

from damage_case import HEADER, STEP, FileCase
from fakes import World
from packets import PUBACK, PUBREC, ack, publish, subscribe

WHOLE = (2, 1, 2, 3)  # sessions, ids between PUBLISH and PUBREL, deliveries, retained messages


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

    def test_those_before_the_damage_are_there(self):
        seen = set()
        for at in range(HEADER, len(self.whole), max(STEP, 3)):
            with open(self.path, "wb") as file:  # noqa: PTH123
                file.write(self.whole[:at] + bytes([self.whole[at] ^ 4]) + self.whole[at + 1 :])
            found = self.there()
            self.assertEqual(len(self.said), 1)
            lost = [n for n in range(4) if found[n] != WHOLE[n]]
            self.assertEqual(lost, list(range(4))[4 - len(lost) :])  # what stands behind it
            self.assertEqual([found[n] for n in lost], [0] * len(lost))
            seen.add(found)
        self.assertEqual(sorted(seen), [(0, 0, 0, 0), (2, 0, 0, 0), (2, 1, 0, 0), (2, 1, 2, 0)])
