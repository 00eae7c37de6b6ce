"""A packet whose handling raises or is refused leaves no half-done state: no QoS 2 id without its
message, no takeover by a client that is then refused, no lost bytes."""

import packets
import packets5
from broker_case import BrokerCase
from fakes import Listener
from memory_medium import MemoryMedium
from packets import PUBCOMP, PUBREC, PUBREL, ack, connect
from tables import counts

from slotmq import Limits
from slotmq.delivery import routing
from slotmq.journal.restore import restore
from slotmq.platform import heap

DELIVERIES = ("receive", "release")


replaced = []


def raises_once(a=0, b=0, c=0, d=0, e=0, f=0, g=0):  # *args and a closure would allocate
    heap.lift()  # as for a hook or an import, and it stays lifted
    setattr(*replaced.pop())
    raise ValueError


class Hooks:
    """Raises an exception, if one is set; otherwise allows everything."""

    raises = None

    def may_publish(self, client_id, topic):
        if self.raises:
            raise self.raises
        return True


class TestQos2(BrokerCase):
    """A QoS 2 id counts as received once its message is stored, and until that went out."""

    def begin(self, delivery, sent):
        self.start(qos2_delivery=delivery)
        self.broker.hooks = Hooks()
        self.reader = self.come(packets5.connect("r") + packets5.subscribe(1, "t", 2))
        client = self.come(sent)
        self.reader.packets()
        client.packets()
        return client

    def fail_once(self, client, sent):
        """The exception leaves the turn; the next turn works."""
        client.send(sent)
        with self.assertRaises(ValueError):
            self.world.turn()

    def deliver(self, client, again):
        client.send(again)
        self.world.turn(3)
        self.assertEqual(client.packets(), [ack(PUBREC, 7)])
        client.send(ack(PUBREL, 7))
        self.world.turn(3)
        self.assertEqual(client.packets(), [ack(PUBCOMP, 7)])
        (found,) = self.reader.packets()
        self.assertEqual(packets5.read_publish(found)[4], b"x")

    def test_after_an_exception_of_a_hook_the_message_can_be_sent_again(self):
        for delivery in DELIVERIES:
            with self.subTest(delivery=delivery):
                client = self.begin(delivery, packets5.connect("c"))
                self.broker.hooks.raises = ValueError()
                self.fail_once(client, packets5.publish("t", b"x", 2, 7))
                self.broker.hooks.raises = None
                self.deliver(client, packets5.publish("t", b"x", 2, 7))

    def test_after_an_exception_no_local_holds_for_its_own_messages_only(self):
        """The next message is not taken for one of the client whose publish failed."""
        client = self.begin("receive", packets5.connect("c") + packets5.subscribe(1, "t", 4))
        self.broker.hooks.raises = ValueError()
        self.fail_once(client, packets5.publish("t", b"x"))
        self.broker.hooks.raises = None
        other = self.come(connect("o"))
        other.send(packets.publish("t", b"y", 1, 1))
        self.world.turn(2)
        self.assertEqual(packets5.read_publish(client.packets()[-1])[4], b"y")

    def test_after_an_exception_while_storing_it_can_be_sent_again(self):
        for delivery in DELIVERIES:
            with self.subTest(delivery=delivery):
                client = self.begin(delivery, connect("c"))
                self.raise_in(routing, "take_message", client, packets.publish("t", b"x", 2, 7))
                self.deliver(client, packets.publish("t", b"x", 2, 7, dup=True))

    def raise_in(self, place, name, client, sent):
        replaced.append((place, name, getattr(place, name)))
        setattr(place, name, raises_once)
        self.fail_once(client, sent)

    def test_after_an_exception_at_its_release_it_can_be_sent_again(self):
        for version in (packets, packets5):
            with self.subTest(version=version):
                client = self.begin("release", version.connect("c"))
                sent = version.publish("t", b"x", 2, 7)
                client.send(sent)
                self.world.turn(2)
                client.packets()
                self.raise_in(routing, "route", client, ack(PUBREL, 7))
                self.deliver(client, sent)


class TestTakeover(BrokerCase):
    """Only an accepted connection takes a session over."""

    def check(self, newcomer, refused):
        old = self.come(connect("c", will=("w", b"last", 1)))
        reader = self.come(connect("r") + packets.subscribe(1, "w", 1))
        while self.take_message():
            pass
        old.packets()
        reader.packets()
        new = self.come(newcomer)
        self.assertEqual(new.packets()[0][: len(refused)], refused)
        self.assertFalse(old.stream.closed)
        self.assertEqual(reader.packets(), [])
        old.send(packets.PINGREQ)
        self.world.turn(2)
        self.assertEqual(old.packets(), [packets.PINGRESP])
        self.give_back()
        self.come(newcomer)
        self.assertTrue(old.stream.closed)
        self.assertEqual(len(reader.packets()), 1)

    def setUp(self):
        super().setUp()
        self.stored = []

    def take_message(self):
        """Take a message slot; -> was there one?"""
        msg = routing.take_message(self.broker.tables, b"xxx", 0, 1, 1, 1, 0)
        if msg != 0xFFFF:
            self.stored.append(msg)
        return msg != 0xFFFF

    def give_back(self):
        for msg in self.stored:
            routing.unref(self.broker.tables, msg)
        self.stored = []

    def test_not_by_a_client_whose_will_finds_no_space(self):
        self.check(connect("c", will=("w", b"new", 0)), b"\x20\x02\0\3")

    def test_not_by_a_client_of_version_5_whose_will_finds_no_space(self):
        sent = packets5.connect("c", will=("w", b"new", 0, b""))
        self.check(sent, b"\x20\x03\0\x88")

    def test_not_by_a_client_of_a_full_listener(self):
        listener = Listener()
        self.world.loop.listeners.add(listener, listener.accept, 1)
        self.at_first = counts(self.broker)
        old = self.come(connect("c"))
        for name, answer in (("o", b"\x20\x02\0\0"), ("c", b"\x20\x02\0\3")):
            one = self.world.come(connect(name), listener=listener)
            self.assertEqual(one.packets(), [answer])
        self.assertFalse(old.stream.closed)

    def test_not_by_a_client_whose_session_finds_no_slot(self):
        """It would replace a session that ends with its connection."""
        self.start(Limits(sessions=8, connections=4))
        old = self.come(connect("c"))
        for n in range(4):
            sent = connect(f"k{n}", clean=False) + packets.subscribe(1, "t", 1)
            self.come(sent).leave()
            self.world.turn(3)
        self.come(packets.connect("p") + packets.publish("t", b"x", 1, 1))
        new = self.come(connect("c", clean=False))
        self.assertEqual(new.packets(), [b"\x20\x02\0\3"])
        self.assertFalse(old.stream.closed)
        new = self.come(connect("c"))
        self.assertEqual(new.packets(), [b"\x20\x02\0\0"])
        self.assertTrue(old.stream.closed)


class Commits:
    """A journal's commits, one of which raises MemoryError."""

    def __init__(self, journal, left):
        self.works = journal.commit
        self.left = left
        self.is_due = journal._is_due
        journal.commit = self.commit

    def commit(self):
        self.left -= self.is_due(0)
        if not self.left:
            self.left = -1
            heap.lift()
            raise MemoryError
        return self.works()


class TestWriting(BrokerCase):
    """After an exception the next turn commits and sends."""

    def test_after_a_memory_error_in_commit_a_will_is_delivered(self):
        for left in range(1, 5):
            with self.subTest(left=left):
                self.start()
                restore(self.broker, MemoryMedium(), print)
                self.at_first = counts(self.broker)
                reader = self.come(connect("r") + packets.subscribe(1, "w", 1))
                client = self.come(connect("c", will=("w", b"last", 1)))
                reader.packets()
                commits = Commits(self.broker.journal, left)
                client.leave()
                self.world.turn(4)
                self.assertEqual(len(reader.packets()), 1)
                self.broker.journal.commit = commits.works
                self.tearDown()
