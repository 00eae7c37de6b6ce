"""A medium without room: nothing new is promised, nothing that was is broken, and it passes."""

import packets5
from fakes import HUP, IN, World
from full_media import OnDisk, OnFlash, OnLittlefs
from invariants import broken
from journal_case import RESUMED, JournalCase
from packets import PINGREQ, PINGRESP, PUBACK, PUBREC, PUBREL, ack, connect, publish, subscribe

from slotmq import Broker, Limits, Settings
from slotmq.journal.location import snapshot_bytes
from slotmq.journal.restore import restore
from slotmq.platform.runtime import MICROPYTHON

LIMITS = {"deliveries": 200, "queued": 200, "messages": 200, "message_bytes": 60000}
REFUSED = b"\x20\x02\0\3"
LONG = b"x" * 400


class FullCase(JournalCase):
    """Somebody fills the medium, and later makes room again: fill() and free()."""

    SNAPSHOT = snapshot_bytes(Limits(**LIMITS))

    def start(self):
        settings = Settings(sys_interval=0, **dict(self.settings))
        settings.max_session_share = settings.max_offline_share = 100
        self.broker = Broker(Limits(**LIMITS), settings)
        self.world = World(self.broker)
        restore(self.broker, self.made(), self.said.append)

    def reboot(self):
        self.assertEqual(broken(self.broker), [])
        self.medium.close()
        self.start()
        self.assertEqual(broken(self.broker), [])

    def setUp(self):
        super().setUp()
        self.reader = self.client("reader", clean=False)
        self.ask(self.reader, subscribe(1, "t/#", 2), b"\x90\x03\0\1\2")
        self.reader.leave()
        self.publisher = self.client("publisher", clean=False)
        self.ids = 0

    def say(self, payload, retain=False):
        """A message of QoS 1 is acknowledged; was it refused?"""
        self.ids += 1
        before = self.broker.messages.refused
        said = publish("t/a", payload, 1, self.ids, retain=retain)
        self.ask(self.publisher, said, ack(PUBACK, self.ids))
        return self.broker.messages.refused > before

    def fill_up(self):
        """Publish until that is refused; what was not."""
        self.fill()
        taken = []
        while len(taken) < 150:
            payload = LONG + b"%d" % len(taken)
            if self.say(payload):
                self.assertTrue(self.broker.journal_full)
                return taken
            taken.append(payload)
        raise AssertionError("it is never full")

    def receive(self):
        """The reader comes, and has all that waits for it."""
        reader = self.client("reader", RESUMED, clean=False)
        for _ in range(100):
            reader.answer()
            self.world.turn(2)
        return reader, [payload for _, payload, _ in reader.messages]

    def wait(self):
        self.world.turn(110, ms=100)

    def test_what_was_promised_is_there_and_nothing_else(self):
        taken = self.fill_up()
        self.assertGreater(len(taken), 0)
        self.assertTrue(self.say(b"again"))
        self.reboot()
        _, found = self.receive()
        self.assertEqual(found, taken)

    def test_what_was_delivered_makes_room(self):
        self.fill_up()
        self.free()
        self.receive()
        self.wait()
        self.assertFalse(self.broker.journal_full)
        self.assertFalse(self.say(b"later"))
        self.reboot()
        _, found = self.receive()
        self.assertEqual(found, [b"later"])

    def test_tables_refuse_what_would_be_kept(self):
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

    def test_others_are_served(self):
        """What nobody must keep goes on, and what is kept may change and end."""
        self.fill_up()
        clean = self.client("clean")
        self.ask(clean, subscribe(1, "live", 2), b"\x90\x03\0\1\2")
        self.ask(self.publisher, publish("live", b"now", 1, 999), ack(PUBACK, 999))
        clean.answer()
        self.assertEqual(clean.messages, [(b"live", b"now", 1)])
        reader = self.client("reader", RESUMED, clean=False)
        reader.answer()
        self.world.turn(2)
        reader.send(subscribe(2, "t/#", 1))  # as it is already
        self.world.turn(3)
        self.assertIn(b"\x90\x03\0\2\1", reader.answer())

    def test_two_steps_of_qos_2_end(self):
        said = publish("t/b", b"before", 2, 77)
        self.ask(self.publisher, said, ack(PUBREC, 77))
        taken = self.fill_up()
        self.ask(self.publisher, ack(PUBREL, 77), ack(0x70, 77))
        self.reboot()
        _, found = self.receive()
        self.assertEqual(found, [b"before"] + taken)  # noqa: RUF005

    def test_it_is_said(self):
        lines = []
        self.broker.log = lambda bit, text: "journal:" in text and lines.append(text)
        self.broker.log_mask = 2
        self.fill_up()
        self.free()
        self.receive()
        self.wait()
        self.assertEqual(
            lines,
            [
                "The journal: no room, nothing new is promised.",
                "The journal: there is room again.",
            ],
        )

    def test_that_all_wait_is_said_and_what_is_no_lack_of_room_by_its_number(self):
        lines = []
        self.broker.log = lambda bit, text: "journal:" in text and lines.append(text)
        self.broker.log_mask = 2
        before = self.medium.begin
        for errno, why in ((28, "no room"), (5, "it cannot be written (error 5)")):
            lines.clear()

            def begin(generation, errno=errno):
                raise OSError(errno, "write")

            self.medium.begin = begin
            self.broker.journal.compacted()
            self.publisher.send(PINGREQ)
            self.world.turn(5)
            self.assertEqual(self.publisher.packets(), [])
            self.medium.begin = before
            self.wait()
            self.assertEqual(self.publisher.packets(), [PINGRESP])
            all_wait = f"The journal: {why}, all clients wait until that changes."
            self.assertEqual(lines, [all_wait, "The journal: there is room again."])

    def closed(self):
        self.ids += 1
        self.publisher.send(publish("t/a", LONG, 1, self.ids))
        self.world.turn(3)
        return self.publisher.stream.closed

    def test_the_policy_of_the_table_says_what_becomes_of_a_message(self):
        self.broker.settings.when_full["messages"] = "disconnect"
        self.broker.apply_settings()
        self.fill()
        for _ in range(150):
            if self.closed():
                break
        self.assertTrue(self.broker.journal_full)
        self.assertEqual(self.publisher.packets()[-1:], [ack(PUBACK, self.ids - 1)])

    def test_version_5_is_told_that_a_quota_is_exceeded(self):
        self.fill_up()
        new = self.come(packets5.connect("five", expiry=60))
        self.assertEqual(new.packets(), [b"\x20\x03\0\x88\0"])
        five = self.come(packets5.connect("five"))
        self.assertEqual(five.packets()[0][3], 0)
        said = packets5.publish("t/a", LONG, 1, 5)
        self.ask(five, said, b"\x40\x03\0\5\x97")
        self.ask(five, packets5.publish("t/a", LONG, 2, 6), b"\x50\x03\0\6\x97")
        self.ask(five, packets5.publish("elsewhere", LONG, 1, 7), b"\x40\x03\0\7\x10")

    def test_one_that_is_held_until_its_pubrel_is_refused_too(self):
        self.settings = (("qos2_delivery", "release"),)
        self.device = self.disk = None
        self.tearDown()
        self.setUp()
        self.fill_up()
        refused = self.broker.messages.refused
        self.ask(self.publisher, publish("elsewhere", LONG, 2, 5), ack(PUBREC, 5))
        self.assertEqual(self.broker.messages.refused, refused + 1)

    def test_the_broker_itself_is_a_publisher_like_others(self):
        taken = self.fill_up()
        self.broker.publish("t/a", LONG, 1)
        self.reboot()
        _, found = self.receive()
        self.assertEqual(found, taken)


del JournalCase


class TestFlash(OnFlash, FullCase):
    pass


if MICROPYTHON:

    class TestFile(OnLittlefs, FullCase):
        pass
else:

    class TestFile(OnDisk, FullCase):
        def test_a_start_without_room_promises_nothing_until_there_is(self):
            taken = self.fill_up()
            self.disk.names.pop("/j/f.room", None)
            self.disk.space = self.disk.used()
            self.reboot()
            self.assertIn("no room", self.said[-1])
            reader = self.come(b"\xc0\0")  # what does not wait for anything is told nothing yet
            self.assertEqual(reader.packets(), [])
            self.free()
            self.wait()
            self.assertFalse(self.broker.journal_full)
            _, found = self.receive()
            self.assertEqual(found, taken)

        def test_who_waits_for_room_turns_nothing(self):
            """Its socket would take the answer, and is not asked until the answer may leave."""
            self.fill_up()
            self.disk.names.pop("/j/f.room", None)
            self.disk.space = self.disk.used()
            self.reboot()
            waiting = self.come(connect("waiting"))
            self.assertEqual(waiting.packets(), [])
            self.assertEqual(self.world.poller.masks[waiting.stream], IN | HUP)
            self.assertEqual(self.world.poller.ipoll(0), [])
            self.free()
            self.wait()
            self.assertEqual(waiting.packets(), [b"\x20\x02\0\0"])
            self.assertEqual(self.world.poller.masks[waiting.stream], IN | HUP)


del FullCase
