"""The rows of each table survive a power cut: a start puts back what the broker had; through the
real loop."""

import packets5
from invariants import broken
from journal_case import RESUMED, JournalCase
from memory_medium import MemoryMedium
from packets import (
    DISCONNECT,
    PUBACK,
    PUBCOMP,
    PUBREC,
    PUBREL,
    ack,
    connect,
    publish,
    subscribe,
)
from row_kinds import FIVE, LIMITS, SCENES, WRITER, Stage, play, reader
from stored_state import tables

from slotmq import Broker, Limits, Settings
from slotmq.journal.restore import read_back

# ruff: noqa: RUF005 - MicroPython has no stars in a list
DUP = 8


def unsubscribe(name):
    return b"\xa2" + bytes((4 + len(name), 0, 9, 0, len(name))) + name


def sent(*packets):
    return [("writer", None, packet) for packet in packets]


def subscribed(*rows):
    """A client with a persistent session and these (filter, QoS, identifier or b"")."""
    data = [packets5.subscribe(n + 1, *row) for n, row in enumerate(rows)]
    return [("five", None, b"".join(data))]


STEPS = {
    "a session that ends with its connection and has no will": [("w", connect("w"))],
    "a discarded session": reader(1) + [("again", connect("reader"))],
    "a clean session with a will, after a persistent one with an id": [
        ("same", connect("same", clean=False)),
        ("same", None, publish("t", b"half", 2, 77)),
        ("again", connect("same", will=("will", "gone", 1))),
    ],
    "filters of each form, and one that is gone": WRITER
    + sent(*[subscribe(n + 1, name, n % 3) for n, name in enumerate(("a/b", "a/+/c", "#", "/"))])
    + sent(unsubscribe(b"a/b")),
    "subscriptions that swapped their slots in one turn": WRITER
    + sent(subscribe(1, "a", 1), subscribe(2, "b", 1))
    + sent(unsubscribe(b"b") + unsubscribe(b"a") + subscribe(1, "b", 2) + subscribe(2, "c", 0)),
    "several subscription identifiers": FIVE
    + subscribed(("t/#", 1, b"\x0b\x05"), ("t/a", 1, b"\x0b\x06"))
    + WRITER
    + sent(publish("t/a", b"x", 1, 7)),
    "groups, whose slots change when the first is gone": FIVE
    + subscribed(("$share/g/u", 1), ("$share/h/t", 1), ("$share/i/t", 1))
    + [("five", None, b"\xa2\x0f\0\x01\0\0\x0a$share/g/u")]
    + WRITER
    + sent(publish("t", b"x", 1, 7))
    + ["compact"],
    "what waits, what was sent, what was released": reader(2)
    + WRITER
    + sent(publish("t", b"a", 2, 1), publish("t", b"b", 2, 2), publish("t", b"c", 1, 3))
    + [("reader", None, ack(PUBREC, 1) + ack(PUBREC, 2) + ack(PUBCOMP, 1))],
    "what its receiver acknowledged": reader(1)
    + WRITER
    + sent(publish("t", b"a", 1, 1))
    + [("reader", None, ack(PUBACK, 1) + DISCONNECT)]
    + sent(publish("t", b"b", 1, 2)),
    "ids between PUBLISH and PUBREL": WRITER
    + sent(*[publish("t", b"x", 2, n) for n in (7, 8, 9)])
    + sent(ack(PUBREL, 8)),
    "retained: set, replaced and cleared in one turn": WRITER
    + sent(publish("r/1", b"one", retain=True) + publish("r/2", b"two", retain=True))
    + sent(publish("r/1", b"another", retain=True) + publish("r/2", b"", retain=True)),
    "a slot that was used again in one turn": WRITER
    + sent(*[publish(f"r/{n}", b"old", retain=True) for n in range(3)])
    + sent(publish("r/1", b"", retain=True) + publish("r/3", b"x", retain=True)),
}


def kept(broker):
    """What must survive: not the times, and whether a delivery was sent may be less known."""
    found = tables(broker)
    wills = [
        row for row in found["sessions"] if not row[1] or row[5]
    ]  # it may end with its client
    found["sessions"] = [row[:4] + (row[5],) for row in wills]
    rows = [row[:3] + (row[3] == 3, row[4] & ~DUP) + row[5:] for row in found["deliveries"]]
    found["deliveries"] = rows
    return found


class TestScenes(JournalCase):
    def check(self, steps):
        medium = MemoryMedium()
        stage = Stage(medium)
        play(stage, steps)
        before = kept(stage.broker)
        restored = Broker(Limits(**LIMITS), Settings(sys_interval=0))
        read_back(restored, medium.after_the_cut(), self.fail)
        self.assertEqual(kept(restored), before)
        self.assertEqual(broken(restored), [])
        again = Stage(medium.after_the_cut()).broker  # as before, but wills are published
        for name in ("subscriptions", "received"):
            self.assertEqual(kept(again)[name], before[name])

    def test_a_start_puts_back_what_the_broker_had(self):
        for name, steps in STEPS.items():
            with self.subTest(scene=name):
                self.check(steps)
        for name, (before, steps, _) in SCENES.items():
            with self.subTest(scene=name):
                self.check(before + steps)

    def test_what_was_in_flight_is_sent_again_with_its_id_and_dup(self):
        reader = self.subscriber("reader", "t", 2)
        publisher = self.client("publisher", clean=False)
        for n in (1, 2):
            self.ask(publisher, publish("t", b"%d" % n, 2, n), ack(PUBREC, n))
        first = reader.packets()
        self.ask(reader, ack(PUBREC, 1), ack(PUBREL, 1))
        self.reboot()
        again = bytes((first[1][0] | DUP,)) + first[1][1:]
        reader = self.client("reader", RESUMED, clean=False)
        self.assertEqual(reader.packets(), [ack(PUBREL, 1), again])
        publisher = self.client("publisher", RESUMED, clean=False)
        self.ask(publisher, publish("t", b"2", 2, 2, dup=True), ack(PUBREC, 2))
        self.ask(publisher, ack(PUBREL, 2), ack(PUBCOMP, 2))
        self.assertEqual(self.broker.deliveries.count[0], 2)
        self.ask(reader, ack(PUBCOMP, 1))
        self.assertEqual(self.broker.deliveries.count[0], 1)

    def test_wills_are_published(self):
        self.subscriber("watcher", "will", 1)
        self.client("clean", will=("will", "of the clean", 1))
        self.client("kept", clean=False, will=("will", "of the kept", 1))
        gone = self.client("gone", will=("will", "of the disconnected", 1))
        gone.send(DISCONNECT)
        self.world.turn(3)
        self.reboot()
        self.assertEqual(sorted(self.payloads("watcher")), [b"of the clean", b"of the kept"])
        self.reboot()
        self.world.turn(3)
        self.assertEqual(self.broker.sessions.names.count(), 2)

    def test_what_needs_no_row_writes_nothing(self):
        """QoS 0, and QoS 2 between sessions that end with their connections."""
        publisher, clean = self.client("p"), self.client("clean")
        self.ask(clean, subscribe(1, "t", 2), b"\x90\x03\0\1\2")
        syncs = self.medium.syncs
        for n in range(3):
            self.ask(publisher, publish("t", b"x"))
            self.ask(publisher, publish("t", b"x", 2, n + 9), ack(PUBREC, n + 9))
            self.ask(publisher, ack(PUBREL, n + 9), ack(PUBCOMP, n + 9))
            clean.answer()
            self.world.turn(3)
        self.assertEqual(len(clean.messages), 6)
        self.assertEqual(self.medium.syncs, syncs)

    def test_with_a_full_medium_answers_wait_until_there_is_space(self):
        client = self.client("p")
        self.medium.space = 0
        self.ask(client, publish("r", b"x", 0, retain=True) + b"\xc0\0")
        self.medium.space = 1 << 20
        self.wait(3)
        self.assertEqual(client.packets(), [b"\xd0\0"])
        self.reboot()
        self.assertEqual(self.broker.retained.names.count(), 1)

    def test_a_compaction_drops_replaced_rows(self):
        client = self.client("p")
        for _ in range(100):
            client.send(publish("r", b"x" * 50, retain=True))
            self.world.turn(2)
        before = self.medium.end
        self.broker.compact()
        self.assertTrue(self.medium.end < before / 20)
        self.reboot()
        self.assertEqual(self.broker.retained.names.count(), 1)


class TestOrder(JournalCase):
    """Queued QoS 0 messages are not stored; those between them keep their order."""

    limits = (("deliveries", 14), ("queued", 12), ("inflight", 4))
    settings = (("queue_qos0_messages", True),)

    def test_stored_messages_keep_their_order(self):
        for before in (0, 12, 13, 14):  # the last slot and the first ones are among those used
            self.setUp()
            self.check(before)

    def check(self, before):
        reader = self.subscriber("reader", "t", 2)
        publisher = self.client("publisher", clean=False)
        for _ in range(before):
            self.ask(publisher, publish("t", b"", 1, 1), ack(PUBACK, 1))
            reader.answer()
            self.world.turn(2)
        self.leave(reader)
        sent = b""
        for n in range(12):
            qos = (1, 0, 2, 1)[n % 4]
            sent += publish("t", b"%d" % n, qos, n + 1 if qos else 0)
        publisher.send(sent)  # in one turn, so in one commit
        self.world.turn(3)
        self.assertEqual(self.broker.deliveries.count[0], 12)
        self.reboot()
        found = [int(payload) for payload in self.payloads("reader")]
        self.assertEqual(found, [n for n in range(12) if n % 4 != 1])


class TestReusedSlot(JournalCase):
    """With a commit interval a delivery's slot may pass to another session between two commits."""

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


class TestReleasedFirst(JournalCase):
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
