"""Message Expiry Interval of any size is reduced by the seconds that a message waited."""

import packets5
from broker_case import BrokerCase
from journal_case import JournalCase
from packets import PUBACK, ack

from slotmq import Limits
from slotmq.fast import unref
from slotmq.platform import ondemand

FOREVER = 0xFFFFFFFF
LARGE = (33554431, 33554432, 50000000, 50000001, 0x3FFFFFFF, 0x40000000, 0x7FFFFFFF, FOREVER)
EACH = (1, 1000) + LARGE  # noqa: RUF005
LIMITS = {"tx_bytes": 128, "max_packet": 2048, "retained_name_bytes": 8192}


def expiry(seconds):
    """The property Message Expiry Interval."""
    return b"\x02" + seconds.to_bytes(4, "big")


class Clients:
    """Steps of both cases below."""

    ends = ("",)  # of topics

    def topics(self, seconds):
        return [f"t/{seconds}{end}" for end in self.ends]

    def remaining(self, waited):
        """After so many seconds, of all messages that have not expired: topic -> property."""
        found = {}
        for seconds in EACH:
            left = seconds - waited
            for topic in self.topics(seconds) if left > 0 else ():
                found[topic] = expiry(left)
        return found

    def here(self, name, more=b"", clean=True):
        client = self.come(packets5.connect(name, clean=clean, expiry=FOREVER) + more, 12)
        self.assertEqual(client.packets()[0][0], 0x20)
        return client

    def published(self):
        """Publish all messages, retained and for an absent session; -> their publisher."""
        self.here("away", packets5.subscribe(1, "t/#", 1)).leave()
        sender = self.here("p")
        for seconds in EACH:
            for topic in self.topics(seconds):
                sender.send(packets5.publish(topic, b"x", 1, 1, expiry(seconds), retain=True))
                self.world.turn(8)
        self.assertEqual(len(sender.packets()), len(self.ends) * len(EACH))
        return sender

    def later(self, seconds):
        """So many seconds pass at once."""
        self.broker.now += seconds * 10
        self.world.turn(3)

    def found(self, name, more=b"", clean=True):
        """What a client gets at its connect: topic -> property."""
        client = self.come(packets5.connect(name, clean=clean, expiry=FOREVER) + more, 20)
        found = {}
        for _ in range(len(EACH) * 2):
            for data in client.packets():
                if data[0] >> 4 == 3:
                    flags, topic, packet_id, properties, _ = packets5.read_publish(data)
                    self.assertNotIn(topic, found)
                    found[topic] = properties
                    if flags & 6:
                        client.send(ack(PUBACK, packet_id))
            self.world.turn(6)
        client.leave()
        self.world.turn(3)
        return found


class TestQueued(BrokerCase, Clients):
    ends = ("", "x" * 200)  # larger than the outgoing buffer

    def setUp(self):
        self.start(Limits(**LIMITS))
        self.broker.now = 1000

    def test_retained_and_queued_messages(self):
        for waited in (0, 1, 999, 1000, 33554430, 33554431, 33554432, 50000001, 70000000):
            with self.subTest(waited=waited):
                self.setUp()
                sender = self.published()
                self.later(waited)
                found = self.found("late", packets5.subscribe(1, "#", 1))
                self.assertEqual(found, self.remaining(waited))
                self.assertEqual(self.found("away", clean=False), self.remaining(waited))
                for seconds in EACH:
                    for topic in self.topics(seconds):
                        sender.send(packets5.publish(topic, b"", retain=True))
                self.world.turn(60)
                self.assertEqual(self.broker.messages.count[0], 0)

    def test_a_message_that_is_sent_again(self):
        sender = self.here("p")
        for seconds in LARGE:
            with self.subTest(seconds=seconds):
                client = self.here("s", packets5.subscribe(1, "#", 1))
                sender.send(packets5.publish("t", b"x", 1, 1, expiry(seconds)))
                self.world.turn(6)
                self.check_sent(client, seconds)
                client.leave()
                self.later(10000)
                client = self.come(packets5.connect("s", clean=False), 6)
                packet_id = self.check_sent(client, seconds - 10000)
                client.send(ack(PUBACK, packet_id))
                self.world.turn(3)

    def check_sent(self, client, left):
        sent = [data for data in client.packets() if data[0] >> 4 == 3]
        self.assertEqual(len(sent), 1)
        _, _, packet_id, properties, _ = packets5.read_publish(sent[0])
        self.assertEqual(properties, expiry(left))
        return packet_id

    def test_a_wills_expiry_begins_when_it_is_published(self):
        witness = self.here("w", packets5.subscribe(1, "#", 0))
        for seconds in EACH:
            for delay in (0, 5000):
                with self.subTest(seconds=seconds, delay=delay):
                    properties = b"\x18" + delay.to_bytes(4, "big") + expiry(seconds)
                    will = ("t", "x", 0, properties)
                    client = self.come(packets5.connect("m", will=will, expiry=FOREVER))
                    self.later(5000)
                    client.leave()
                    self.world.turn(3)
                    self.later(delay)
                    self.world.turn(6, ms=100)
                    found = [packets5.read_publish(data) for data in witness.packets()]
                    self.assertEqual([one[3] for one in found], [expiry(seconds)])


class TestJournal(JournalCase, Clients):
    def test_a_reboot_does_not_prolong_the_expiry(self):
        for waited in (999, 33554432):
            with self.subTest(waited=waited):
                self.setUp()
                self.check(waited)

    def check(self, waited):
        self.broker.now = 1000
        sender = self.published()
        for seconds in (1000, 33554432):
            will = (f"t/will/{seconds}", "x", 1, expiry(seconds))
            self.come(packets5.connect(f"m{seconds}", will=will, expiry=FOREVER))
        self.later(waited)
        sender.send(packets5.publish("now", b"x", retain=True))  # the journal stores its time
        self.world.turn(6)
        self.reboot()
        self.world.turn(6)
        self.later(1000)
        found = self.found("late", packets5.subscribe(1, "t/#", 1))
        self.assertEqual(found, self.remaining(waited + 1000))
        # Wills were published at the restart, and one of them has expired since.
        wanted = self.remaining(waited + 1000)
        wanted["t/will/33554432"] = expiry(33554432 - 1000)
        self.assertEqual(self.found("away", clean=False), wanted)

    def test_a_reboot_does_not_prolong_the_expiry_of_a_will(self):
        will = ("t/will", "x", 1, expiry(100))
        client = self.come(packets5.connect("m", will=will, expiry=FOREVER))
        self.here("away", packets5.subscribe(1, "t/#", 1), clean=False).leave()
        self.later(60)
        client.leave()
        self.world.turn(6)
        self.reboot()
        self.later(60)
        self.assertEqual(self.found("away", clean=False), {"t/will": expiry(40)})


class TestFullOfExpired(BrokerCase):
    """Who finds a table full of messages that have expired drops these first, at once."""

    LIMITS = {"retained": 8, "messages": 40, "deliveries": 40, "queued": 12, "message_bytes": 4096}  # noqa: RUF012
    MANY = {"retained": 4000, "messages": 9000, "deliveries": 60000, "queued": 4000}  # noqa: RUF012
    MANY |= {"message_bytes": 1 << 20, "message_block": 64, "retained_name_bytes": 1 << 17}

    def full(self, count, topic, retain, limits):
        self.start(Limits(**limits))
        for name in ("away", "away too"):
            self.come(packets5.connect(name, clean=False, expiry=FOREVER), 3).leave()
        if not retain:
            reader = self.come(packets5.connect("away", clean=False, expiry=FOREVER), 3)
            reader.send(packets5.subscribe(1, "t/#", 1))
            self.world.turn(3)
            reader.leave()
        self.sender = self.come(packets5.connect("p"), 3)
        for n in range(count):
            self.sender.send(packets5.publish(topic % n, b"x", 1, 1, expiry(1), retain=retain))
            if n % 10 == 9:
                self.world.turn(2)
        self.world.turn(3)
        self.assertEqual(len(self.sender.packets()), count + 1)
        self.expire()

    def expire(self):
        """Two seconds pass; no tick looks for what has expired."""
        self.broker.now += 20
        self.broker.clock[0] = self.broker.now
        self.broker.loop.next_tick = self.broker.now + 1
        self.broker.five.looks = True

    def test_the_table_of_retained_messages(self):
        for limits in (self.LIMITS, self.MANY):
            self.full(limits["retained"], "t/%d", True, limits)
            self.assertEqual(self.broker.retained.names.count(), limits["retained"])
            self.sender.send(packets5.publish("new", b"x", 1, 1, retain=True))
            self.world.turn(2, ms=0)
            self.assertEqual(self.broker.retained.names.count(), 1)
            self.assertEqual(self.broker.retained.refused, 0)
            self.assertEqual(self.broker.messages.count[0], 1)
            self.sender.send(packets5.publish("new", b"", 1, 1, retain=True))

    def test_the_queue_of_a_session(self):
        for limits in (self.LIMITS, self.MANY):
            self.full(limits["queued"], "t/%d", False, limits)
            self.assertEqual(self.broker.deliveries.count[0], limits["queued"])
            self.sender.send(packets5.publish("t/new", b"x", 1, 1))
            self.world.turn(2, ms=0)
            self.assertEqual(self.broker.deliveries.count[0], 1)
            self.assertEqual(self.broker.deliveries.refused, 0)

    def test_message_slots(self):
        limits = dict(self.LIMITS, retained=40, retained_name_bytes=2048)
        self.full(40, "t/%d", True, limits)
        self.assertEqual(self.broker.messages.count[0], 40)
        reader = self.come(packets5.connect("r") + packets5.subscribe(1, "s", 1), 3)
        self.sender.send(packets5.publish("s", b"x", 1, 1))
        self.world.turn(3, ms=0)
        self.assertEqual(reader.packets()[-1][0] >> 4, 3)
        self.assertEqual(self.broker.messages.refused, 0)

    def test_those_behind_thousands_that_last(self):
        self.start(Limits(**dict(self.MANY, retained=9000, retained_name_bytes=1 << 18)))
        sender = self.come(packets5.connect("p"), 3)
        for n in range(9000):
            for_a_second = expiry(1) if n >= 8990 else b""
            sender.send(packets5.publish(f"t/{n}", b"x", 0, 0, for_a_second, retain=True))
            if n % 10 == 9:
                self.world.turn(1)
        self.assertEqual(self.broker.retained.names.count(), 9000)
        self.expire()
        sender.send(packets5.publish("new", b"x", 1, 1, retain=True))
        self.world.turn(2, ms=0)
        self.assertEqual(sender.packets()[-1][:4], b"\x40\x03\x00\x01")
        self.assertEqual(self.broker.retained.names.count(), 8991)
        self.assertEqual(self.broker.retained.refused, 0)
        self.drop_retained()

    def drop_retained(self):
        retained = self.broker.retained
        for at in range(retained.top):
            if retained.msg[at] != 0xFFFF:
                unref(self.broker.tables, retained.remove(at))

    def test_those_in_a_queue_that_is_not_the_longest(self):
        limits = Limits(**dict(self.LIMITS, deliveries=60, queued=30))
        self.start(limits, max_offline_share=100, max_session_share=100)
        for name in ("long", "short"):
            subscribe = packets5.subscribe(1, name, 1)
            self.come(packets5.connect(name, clean=False, expiry=FOREVER) + subscribe, 3).leave()
        sender = self.come(packets5.connect("p"), 3)
        reader = self.come(packets5.connect("r") + packets5.subscribe(1, "new", 1), 3)
        for name, count, properties in (("long", 19, b""), ("short", 18, expiry(1))):
            for _ in range(count):
                sender.send(packets5.publish(name, b"x", 1, 1, properties))
                self.world.turn(2)
        messages = self.broker.messages
        kept = messages.count[0] - 18
        for n in range(3):
            sender.send(packets5.publish(f"r/{n}", b"x", 1, 1, retain=True))
        self.world.turn(2)
        self.assertEqual(messages.count[0], messages.slots)
        self.expire()
        sender.send(packets5.publish("new", b"x", 1, 1))
        self.world.turn(3, ms=0)
        self.assertEqual(reader.packets()[-1][0] >> 4, 3)
        self.assertEqual(messages.refused, 0)
        self.assertEqual(messages.count[0], kept + 4)
        self.drop_retained()

    def test_the_counts_of_sys(self):
        self.start(Limits(**self.LIMITS), sys_interval=10)
        sender = self.come(packets5.connect("p"), 3)
        for n in range(6):
            sender.send(packets5.publish(f"t/{n}", b"x", 1, 1, expiry(1), retain=True))
        self.world.turn(3)
        topic = "$SYS/broker/retained messages/count"
        for end in (b"6", b"0"):
            reader = self.come(packets5.connect("r") + packets5.subscribe(1, topic, 0), 0)
            self.world.turn(4, ms=0)
            self.assertEqual(reader.packets()[-1][-1:], end)
            reader.leave()
            self.world.turn(2, ms=0)
            self.expire()

    def test_once_a_tick(self):
        self.full(self.LIMITS["queued"], "t/%d", False, self.LIMITS)
        self.broker.now -= 15
        for tick in (1, 2):
            for _ in range(9):
                self.sender.send(packets5.publish("t/new", b"x", 1, 1))
                self.world.turn(1, ms=0)
                self.broker.five.expires[0] = 1  # the later looks would find this one
            refused = 9 if tick == 1 else 17
            self.assertFalse(self.broker.five.looks)
            self.assertEqual(self.broker.deliveries.refused, refused)
            self.broker.five.looks = True

    def test_without_memory_it_looks_again(self):
        self.full(self.LIMITS["queued"], "t/%d", False, self.LIMITS)
        module = ondemand.take("v5.expired_slots", self.broker.now)
        marked, module._marked = module._marked, no_memory
        self.assertEqual(self.broker.five.reclaim(), 0)
        module._marked = marked
        self.assertEqual(self.broker.deliveries.count[0], self.LIMITS["queued"])
        self.world.turn(20, ms=100)
        self.assertEqual(self.broker.deliveries.count[0], 0)


def no_memory(_broker):
    raise MemoryError
