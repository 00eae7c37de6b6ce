"""With a commit interval a delivery's slot may pass to another session between two commits."""

from journal_case import RESUMED, JournalCase
from packets import PUBACK, PUBCOMP, PUBREC, PUBREL, ack, publish


class TestReusedSlot(JournalCase):
    limits = (("deliveries", 1), ("inflight", 1))
    commits = (False, 1800)

    def test_only_the_session_that_has_it_now_gets_pubrel(self):
        first, second = self.subscriber("a", "a", 1), self.subscriber("b", "b", 2)
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


class TestOrder(JournalCase):
    limits = (("deliveries", 2), ("inflight", 1))
    commits = (False, 1800)

    def test_a_released_delivery_stands_before_what_waits_for_its_window(self):
        reader = self.subscriber("a", "a", 2)
        self.broker.publish("a", b"x", 2)
        self.ask(reader, b"", publish("a", b"x", 2, 1))
        self.broker.publish("a", b"y", 2)
        self.broker.compact()
        self.ask(reader, ack(PUBREC, 1), ack(PUBREL, 1))
        self.stop()
        reader = self.client("a", RESUMED, clean=False)
        self.assertEqual(reader.packets(), [ack(PUBREL, 1)])
        self.ask(reader, ack(PUBCOMP, 1), publish("a", b"y", 2, 2, dup=True))
