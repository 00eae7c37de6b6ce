"""A full medium: what would have to be stored is refused until there is space, and what is stored
stays."""

import packets5
from fakes import HUP, IN
from full_media import OnDisk, OnFlash, OnLittlefs
from journal_case import CONNACK, REFUSED, RESUMED, JournalCase
from packets import PINGREQ, PINGRESP, PUBACK, PUBREC, PUBREL, ack, connect, publish, subscribe

from slotmq.platform.runtime import MICROPYTHON

LIMITS = {"deliveries": 200, "queued": 200, "messages": 200, "message_bytes": 60000}
LONG = b"x" * 400


class FullCase(JournalCase):
    limits = tuple(LIMITS.items())
    SNAPSHOT = 86_100  # the rows of these tables when all are full

    def cut_power(self):
        self.medium.close()

    def setUp(self):
        super().setUp()
        self.subscriber("reader", "t/#", 2).leave()
        self.publisher = self.client("publisher", clean=False)
        self.ids = 0

    def publish(self, payload, retain=False):
        """A message of QoS 1 is acknowledged; was it refused?"""
        self.ids += 1
        before = self.broker.messages.refused
        sent = publish("t/a", payload, 1, self.ids, retain=retain)
        self.ask(self.publisher, sent, ack(PUBACK, self.ids))
        return self.broker.messages.refused > before

    def fill_up(self):
        """Publish until a message is refused; the others."""
        self.fill()
        taken = []
        while len(taken) < 150:
            payload = LONG + b"%d" % len(taken)
            if self.publish(payload):
                self.assertTrue(self.broker.journal_full)
                return taken
            taken.append(payload)
        raise AssertionError("the medium is never full")

    def received(self):
        return self.payloads("reader", 70)

    def test_after_a_reboot_all_is_there_but_what_was_refused(self):
        taken = self.fill_up()
        self.assertGreater(len(taken), 0)
        self.assertTrue(self.publish(b"again"))
        self.reboot()
        self.assertEqual(self.received(), taken)

    def test_delivered_messages_free_space(self):
        self.fill_up()
        self.free()
        self.received()
        self.wait(11)
        self.assertFalse(self.broker.journal_full)
        self.assertFalse(self.publish(b"later"))
        self.reboot()
        self.assertEqual(self.received(), [b"later"])

    def test_each_table_refuses_what_would_have_to_be_stored(self):
        self.fill_up()
        broker = self.broker
        refused = broker.sessions.refused
        self.client("new", REFUSED, clean=False)
        self.assertEqual(broker.sessions.refused, refused + 1)
        refused = broker.messages.refused
        self.client("will", REFUSED, will=("t/will", "w", 1))
        self.assertEqual(broker.messages.refused, refused + 1)
        refused = broker.subscriptions.refused
        self.ask(self.publisher, subscribe(2, "u", 1), b"\x90\x03\0\2\x80")
        self.assertEqual(broker.subscriptions.refused, refused + 1)
        refused = broker.retained.refused
        self.ask(self.publisher, publish("r", b"x", retain=True) + PINGREQ, b"\xd0\0")
        self.assertEqual(broker.retained.refused, refused + 1)
        self.assertEqual(broker.retained.names.count(), 0)

    def test_what_needs_no_space_is_served(self):
        """Sessions that are not persistent, and those that are already stored."""
        self.fill_up()
        clean = self.client("clean")
        self.ask(clean, subscribe(1, "live", 2), b"\x90\x03\0\1\2")
        self.ask(self.publisher, publish("live", b"now", 1, 999), ack(PUBACK, 999))
        clean.answer()
        self.assertEqual(clean.messages, [(b"live", b"now", 1)])
        reader = self.client("reader", RESUMED, clean=False)
        reader.answer()
        self.world.turn(2)
        reader.send(subscribe(2, "t/#", 1))  # as it was
        self.world.turn(3)
        self.assertIn(b"\x90\x03\0\2\1", reader.answer())

    def test_a_qos_2_publish_that_began_before_is_completed(self):
        sent = publish("t/b", b"before", 2, 77)
        self.ask(self.publisher, sent, ack(PUBREC, 77))
        taken = self.fill_up()
        self.ask(self.publisher, ack(PUBREL, 77), ack(0x70, 77))
        self.reboot()
        self.assertEqual(self.received(), [b"before"] + taken)  # noqa: RUF005

    def test_the_log_has_a_line_when_it_is_full_and_when_there_is_space(self):
        lines = self.log_lines()
        self.fill_up()
        self.free()
        self.received()
        self.wait(11)
        self.assertEqual(len(lines), 2)
        self.assertIn("no space", lines[0])
        self.assertIn("space again", lines[1])

    def test_the_log_says_why_a_compaction_fails_and_that_all_clients_wait(self):
        lines = self.log_lines()
        before = self.medium.begin
        for errno, why in ((28, "no space"), (5, "it cannot be written (error 5)")):
            lines.clear()

            def begin(generation, errno=errno):
                raise OSError(errno, "write")

            self.medium.begin = begin
            self.broker.journal.try_compaction()
            self.publisher.send(PINGREQ)
            self.world.turn(5)
            self.assertEqual(self.publisher.packets(), [])
            self.medium.begin = before
            self.wait(11)
            self.assertEqual(self.publisher.packets(), [PINGRESP])
            self.assertEqual(len(lines), 2)
            self.assertIn(f"{why}, all clients wait", lines[0])
            self.assertIn("space again", lines[1])

    def test_the_policy_of_the_messages_table_applies(self):
        self.broker.settings.when_full["messages"] = "disconnect"
        self.broker.apply_settings()
        self.fill()
        while not self.publisher.stream.closed and self.ids < 150:
            self.ids += 1
            self.publisher.send(publish("t/a", LONG, 1, self.ids))
            self.world.turn(3)
        self.assertTrue(self.broker.journal_full)
        self.assertEqual(self.publisher.packets()[-1:], [ack(PUBACK, self.ids - 1)])

    def test_version_5_gets_reason_code_quota_exceeded(self):
        self.fill_up()
        new = self.come(packets5.connect("five", expiry=60))
        self.assertEqual(new.packets(), [b"\x20\x03\0\x88\0"])
        five = self.client5("five", clean=True, expiry=0)
        self.ask(five, packets5.publish("t/a", LONG, 1, 5), b"\x40\x03\0\5\x97")
        self.ask(five, packets5.publish("t/a", LONG, 2, 6), b"\x50\x03\0\6\x97")
        self.ask(five, packets5.publish("elsewhere", LONG, 1, 7), b"\x40\x03\0\7\x10")

    def test_a_message_that_waits_for_pubrel_is_refused_too(self):
        self.settings = (("qos2_delivery", "release"),)
        self.tearDown()
        self.device = self.disk = None
        self.setUp()
        self.fill_up()
        refused = self.broker.messages.refused
        self.ask(self.publisher, publish("elsewhere", LONG, 2, 5), ack(PUBREC, 5))
        self.assertEqual(self.broker.messages.refused, refused + 1)

    def test_a_message_of_the_program_is_refused_too(self):
        taken = self.fill_up()
        self.broker.publish("t/a", LONG, 1)
        self.reboot()
        self.assertEqual(self.received(), taken)


class TestFlash(OnFlash, FullCase):
    pass


if MICROPYTHON:

    class TestFile(OnLittlefs, FullCase):
        pass
else:

    class TestFile(OnDisk, FullCase):
        def reboot_without_space(self):
            taken = self.fill_up()
            self.disk.names.pop("/j/f.reserve", None)
            self.disk.fill(0)
            self.reboot()
            self.assertIn("no space", self.reports[-1])
            return taken

        def test_after_a_start_without_space_clients_wait_until_there_is(self):
            taken = self.reboot_without_space()
            self.assertEqual(self.come(PINGREQ).packets(), [])
            self.free()
            self.wait(11)
            self.assertFalse(self.broker.journal_full)
            self.assertEqual(self.received(), taken)

        def test_a_client_that_waits_causes_no_turns(self):
            """Its socket is not polled for writing until the answer may leave."""
            self.reboot_without_space()
            waiting = self.come(connect("waiting"))
            self.assertEqual(waiting.packets(), [])
            self.assertEqual(self.world.poller.masks[waiting.stream], IN | HUP)
            self.assertEqual(self.world.poller.ipoll(0), [])
            self.free()
            self.wait(11)
            self.assertEqual(waiting.packets(), [CONNACK])
            self.assertEqual(self.world.poller.masks[waiting.stream], IN | HUP)


del FullCase
