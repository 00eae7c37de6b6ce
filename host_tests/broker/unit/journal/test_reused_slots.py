"""With `interval` a delivery's slot may become another session's between two commits."""

from fakes import World
from journal_case import RESUMED, JournalCase
from memory_medium import MemoryMedium
from packets import PUBACK, PUBCOMP, PUBREC, PUBREL, ack, publish, subscribe

from slotmq import Broker, Limits, Settings
from slotmq.journal.restore import restore


class SlotCase(JournalCase):
    DELIVERIES = 1

    def start(self):
        settings = Settings(sys_interval=0, max_session_share=100, max_offline_share=100)
        self.broker = Broker(Limits(deliveries=self.DELIVERIES, inflight=1), settings)
        self.world = World(self.broker)
        restore(self.broker, self.medium, self.said.append, False, 1800)

    def stop(self):
        """An orderly stop, and a start."""
        self.world.loop.close()
        self.medium = MemoryMedium(kept=self.medium.kept)
        self.start()


class TestSlotUsedAgain(SlotCase):
    def test_the_one_that_has_it_is_released_and_nobody_else(self):
        first, second = self.client("a", clean=False), self.client("b", clean=False)
        self.ask(first, subscribe(1, "a", 1), b"\x90\x03\0\1\1")
        self.ask(second, subscribe(1, "b", 2), b"\x90\x03\0\1\2")
        self.broker.publish("a", b"x", 1)
        self.ask(first, b"", publish("a", b"x", 1, 1))
        self.broker.compact()
        self.ask(first, ack(PUBACK, 1))
        self.broker.publish("b", b"y", 2)
        self.ask(second, b"", publish("b", b"y", 2, 1))
        self.ask(second, ack(PUBREC, 1), ack(PUBREL, 1))
        self.stop()
        self.assertEqual(self.client("a", RESUMED, clean=False).packets(), [])
        self.assertEqual(self.client("b", RESUMED, clean=False).packets(), [ack(PUBREL, 1)])


class TestOrder(SlotCase):
    DELIVERIES = 2

    def test_it_stands_before_what_waits_for_it(self):
        """With a window of one message its PUBREL is what makes room."""
        reader = self.client("a", clean=False)
        self.ask(reader, subscribe(1, "a", 2), b"\x90\x03\0\1\2")
        self.broker.publish("a", b"x", 2)
        self.ask(reader, b"", publish("a", b"x", 2, 1))
        self.broker.publish("a", b"y", 2)
        self.broker.compact()
        self.ask(reader, ack(PUBREC, 1), ack(PUBREL, 1))
        self.stop()
        reader = self.client("a", RESUMED, clean=False)
        self.assertEqual(reader.packets(), [ack(PUBREL, 1)])
        self.ask(reader, ack(PUBCOMP, 1), publish("a", b"y", 2, 2, dup=True))
